// A wide table scrolls in a box of the theme's, which the keyboard must be able to reach.
document$.subscribe(() => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
});

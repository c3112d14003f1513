"""Models of a few hundred kilobytes with random weights, for a fake Hub."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

from .repository import FakeModel

_HIDDEN, _LAYERS, _HEADS, _HEADS_OF_KEYS, _FEED_FORWARD, _CONTEXT = 64, 2, 4, 2, 128, 512
_BYTES = 256
_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(_BYTES))]
_HEAD_SIZE = _HIDDEN // _HEADS


def tiny_models() -> dict[str, FakeModel]:
    """Both kinds of tiny models, by name; the same in each run.

    Raises
    ------
    ModuleNotFoundError
        Without ``gguf`` and ``numpy``.
    """
    return {"local/tiny-llama": tiny_safetensors(), "local/tiny-llama-GGUF": tiny_gguf()}


def tiny_safetensors() -> FakeModel:
    """A llama in two safetensors files with an index, as transformers writes them.

    Its files have the right form and random weights; its tokenizer knows single bytes.
    """
    shards = [
        {name: shape for name, shape in _shapes().items() if _is_first(name)},
        {name: shape for name, shape in _shapes().items() if not _is_first(name)},
    ]
    names = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
    contents = [_safetensors(shard, seed) for seed, shard in enumerate(shards)]
    index = {
        "metadata": {"total_size": sum(_size(shape) for shape in _shapes().values())},
        "weight_map": {
            tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard
        },
    }
    return FakeModel(
        files={
            ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
            "README.md": b"---\nlicense: apache-2.0\n---\n# A tiny llama with random weights\n",
            "config.json": _json(_config()),
            "generation_config.json": _json({"bos_token_id": 1, "eos_token_id": 2}),
            "tokenizer.json": _json(_tokenizer()),
            "tokenizer_config.json": _json({"tokenizer_class": "PreTrainedTokenizerFast"}),
            "model.safetensors.index.json": _json(index),
            **dict(zip(names, contents, strict=True)),
        },
        card={"license": "apache-2.0"},
        pipeline_tag="text-generation",
        library_name="transformers",
    )


def tiny_gguf() -> FakeModel:
    """A llama in one GGUF file, which llama.cpp loads and generates nonsense with.

    Raises
    ------
    ModuleNotFoundError
        Without ``gguf`` and ``numpy``.
    """
    return FakeModel(
        files={
            "README.md": b"---\nlicense: apache-2.0\n---\n# A tiny llama with random weights\n",
            "config.json": _json(_config()),
            "tiny-llama.gguf": _gguf(),
        },
        card={"license": "apache-2.0"},
        pipeline_tag="text-generation",
        library_name="gguf",
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": _HEAD_SIZE,
        "hidden_act": "silu",
        "hidden_size": _HIDDEN,
        "intermediate_size": _FEED_FORWARD,
        "max_position_embeddings": _CONTEXT,
        "model_type": "llama",
        "num_attention_heads": _HEADS,
        "num_hidden_layers": _LAYERS,
        "num_key_value_heads": _HEADS_OF_KEYS,
        "rms_norm_eps": 1e-05,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": len(_TOKENS),
    }


def _tokenizer() -> dict[str, Any]:
    """A tokenizer of single bytes, in the form of the ``tokenizers`` library."""
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": number,
                "content": _TOKENS[number],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number in range(3)
        ],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "ByteFallback"},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "byte_fallback": True,
            "vocab": {token: number for number, token in enumerate(_TOKENS)},
            "merges": [],
        },
    }


def _shapes() -> dict[str, tuple[int, ...]]:
    """The tensors by transformers' names."""
    of_keys = _HEADS_OF_KEYS * _HEAD_SIZE
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (len(_TOKENS), _HIDDEN)}
    for layer in range(_LAYERS):
        shapes |= {
            f"model.layers.{layer}.{name}.weight": shape
            for name, shape in {
                "input_layernorm": (_HIDDEN,),
                "self_attn.q_proj": (_HIDDEN, _HIDDEN),
                "self_attn.k_proj": (of_keys, _HIDDEN),
                "self_attn.v_proj": (of_keys, _HIDDEN),
                "self_attn.o_proj": (_HIDDEN, _HIDDEN),
                "post_attention_layernorm": (_HIDDEN,),
                "mlp.gate_proj": (_FEED_FORWARD, _HIDDEN),
                "mlp.up_proj": (_FEED_FORWARD, _HIDDEN),
                "mlp.down_proj": (_HIDDEN, _FEED_FORWARD),
            }.items()
        }
    return shapes | {"model.norm.weight": (_HIDDEN,), "lm_head.weight": (len(_TOKENS), _HIDDEN)}


def _is_first(name: str) -> bool:
    return "embed_tokens" in name or ".layers.0." in name


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _size(shape: tuple[int, ...]) -> int:
    return 2 * _count(shape)


def _safetensors(shapes: dict[str, tuple[int, ...]], seed: int) -> bytes:
    """A file of bfloat16: https://github.com/huggingface/safetensors, "Format"."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, shape in shapes.items():
        end = start + _size(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, end]}
        start = end
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    return struct.pack("<Q", len(written)) + written + _bfloat16(start // 2, random.Random(seed))


def _bfloat16(count: int, source: random.Random) -> bytes:
    """Numbers between -1/16 and 1/16, by their upper two bytes."""
    floats = struct.pack(f"<{count}f", *(source.uniform(-1 / 16, 1 / 16) for _ in range(count)))
    return b"".join(floats[at + 2 : at + 4] for at in range(0, len(floats), 4))


def _gguf() -> bytes:
    import gguf
    import numpy

    source = numpy.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="local-sagemaker-gguf-") as folder:
        path = Path(folder, "tiny-llama.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_name("tiny-llama")
        writer.add_context_length(_CONTEXT)
        writer.add_embedding_length(_HIDDEN)
        writer.add_block_count(_LAYERS)
        writer.add_feed_forward_length(_FEED_FORWARD)
        writer.add_head_count(_HEADS)
        writer.add_head_count_kv(_HEADS_OF_KEYS)
        writer.add_rope_dimension_count(_HEAD_SIZE)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_vocab_size(len(_TOKENS))
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        writer.add_tokenizer_model("llama")
        writer.add_token_list(_TOKENS)
        writer.add_token_scores([0.0] * len(_TOKENS))
        kinds = gguf.TokenType
        special = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
        writer.add_token_types([*special, *[kinds.BYTE] * _BYTES])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        writer.add_add_space_prefix(False)
        writer.add_chat_template(_CHAT)
        for name, shape in _shapes().items():
            is_norm = name.endswith("norm.weight")
            values = numpy.ones(shape) if is_norm else source.uniform(-1 / 4, 1 / 4, shape)
            writer.add_tensor(_in_gguf(name), values.astype(numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


_CHAT = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _in_gguf(name: str) -> str:
    """A tensor's name in llama.cpp, of its name in transformers."""
    for theirs, ours in _GGUF_NAMES.items():
        name = name.replace(theirs, ours)
    return name

"""Writes a small tokenizer.json of each kind into a folder: python train_tokenizers.py FOLDER"""

import os
import sys

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = sys.argv[1]
CORPUS = [
    "a model serves tensors to clients, and clients don't wait for the model",
    "we're running 12345 requests at 3.14 per second; it's unbelievable",
    "Grüße aus München, naïve café señor", "Привет мир, как дела", "你好世界 这是一个测试",
    "こんにちは世界", "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया", "ΟΔΟΣ οδός Σίσυφος",
    "İstanbul ıçığ", "12345 67 8 9.50 € ½", "👩‍👩‍👧 🎉🎉", "ﬁne ﬂow ①②", "a\u0301 e\u0300", "hello, world! (test) [x] <y>",
] * 20
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = pre_tokenizers.ByteLevel.alphabet()
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def write(name, model, trainer, **parts):
    tokenizer = Tokenizer(model)
    for part, value in parts.items():
        if part not in ("truncation", "padding"):
            setattr(tokenizer, part, value)
    tokenizer.train_from_iterator(CORPUS, trainer)
    if "truncation" in parts:
        tokenizer.enable_truncation(**parts["truncation"])
    if "padding" in parts:
        tokenizer.enable_padding(**parts["padding"])
    tokenizer.save(os.path.join(FOLDER, f"{name}.json"))


def template(single, pair, **tokens):
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[*tokens.items()])


def bpe(special, **more):
    return trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False, **more)


def wordpiece():
    return trainers.WordPieceTrainer(vocab_size=900, special_tokens=BERT, show_progress=False)


def charsmap():
    path = os.path.join(FOLDER, "spm")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_prefix=path, vocab_size=150, normalization_rule_name="nmt_nfkc", minloglevel=2
    )
    with open(f"{path}.model", "rb") as file:
        model = file.read()
    return field(field(model, 3), 2)  # normalizer_spec, precompiled_charsmap


def field(message, wanted):
    """The first bytes field of that number in a message of protobuf."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        length = varint() if kind in (0, 2) else {1: 8, 5: 4}[kind]
        if kind == 0:
            continue
        if kind == 2 and number == wanted:
            return message[at : at + length]
        at += length
    raise KeyError(wanted)


SEP = ("[SEP]", 3)
write(
    "bert", models.WordPiece(unk_token="[UNK]"), wordpiece(),
    normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece(),
    post_processor=template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", **{"[CLS]": 2, "[SEP]": 3}),
    truncation=dict(max_length=24), padding=dict(length=24),
)
write(
    "bert-cased", models.WordPiece(unk_token="[UNK]"), wordpiece(),
    normalizer=normalizers.BertNormalizer(lowercase=False), pre_tokenizer=pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece(),
    post_processor=processors.BertProcessing(SEP, ("[CLS]", 2)),
    truncation=dict(max_length=12, strategy="only_first", direction="left"), padding=dict(direction="left", pad_to_multiple_of=8),
)
write(
    "roberta", models.BPE(), bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], initial_alphabet=BYTES),
    pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True), decoder=decoders.ByteLevel(),
    post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0)),
    truncation=dict(max_length=20, strategy="only_second"), padding=dict(pad_id=1, pad_token="<pad>"),
)
write(
    "gpt2", models.BPE(), bpe(["<|endoftext|>"], initial_alphabet=BYTES),
    pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel(),
    post_processor=processors.ByteLevel(trim_offsets=False),
)
write(
    "llama3", models.BPE(ignore_merges=True), bpe(["<|begin|>", "<|end|>"], initial_alphabet=BYTES),
    pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
    decoder=decoders.ByteLevel(), post_processor=template("<|begin|> $A", "<|begin|> $A <|begin|>:1 $B:1", **{"<|begin|>": 0}),
)
write(
    "llama2", models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
    bpe(["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))], limit_alphabet=60),
    normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    post_processor=template("<s> $A", "<s> $A <s>:1 $B:1", **{"<s>": 1}),
)
unigram = dict(vocab_size=500, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
write(
    "unigram", models.Unigram(), trainers.UnigramTrainer(**unigram),
    normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]),
    pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(),
    post_processor=template("$A </s>", "$A </s> $B </s>", **{"</s>": 1}), padding=dict(),
)
write(
    "xlm", models.Unigram(), trainers.UnigramTrainer(**unigram),
    normalizer=normalizers.Precompiled(charsmap()),
    pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoder=decoders.Metaspace(),
    post_processor=template("$A </s>", "$A </s> $B </s>", **{"</s>": 1}),
)
write(
    "words", models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False),
    normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
    pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)]),
)

"""Continues a text word by word, as corpus.txt would: one response for each word, and an end that the corpus gives or max_words.

The next word is one of those that follow the last two (or else the last one) in the corpus. The same seed gives the same text.
"""

import random
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

MOST = 1024  # words of an answer
MOST_ANSWERS = 64  # at the same time
END = ""  # follows the last word of a paragraph


class TritonPythonModel:
    def initialize(self, args):
        self.followers = defaultdict(list)
        for paragraph in Path(__file__).with_name("corpus.txt").read_text("utf8").split("\n\n"):
            words = [*paragraph.split(), END]
            for i in range(1, len(words)):
                self.followers[(words[i - 1],)].append(words[i])
                self.followers[tuple(words[max(0, i - 2) : i])].append(words[i])
        self.free = threading.Semaphore(MOST_ANSWERS)
        self.starts = [words[0] for words in self.followers if len(words) == 2]

    def execute(self, requests):
        # Each in a thread of its own, so that one does not wait for another to end.
        for request in requests:
            if self.free.acquire(blocking=False):
                threading.Thread(target=self.answer, args=(request,), daemon=True).start()
            else:
                text = f"{MOST_ANSWERS} texts are continued now, try again later"
                end(request.get_response_sender(), pb_utils.TritonError(text, pb_utils.TritonError.UNAVAILABLE))

    def answer(self, request):
        sender = request.get_response_sender()
        try:
            for word in self.continue_text(*read(request)):
                if sender.is_cancelled():  # the client has left
                    break
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("word", np.array([word.encode()], np.object_))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        except Exception as error:
            end(sender, pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        finally:
            self.free.release()

    def continue_text(self, prompt, max_words, seed):
        chance = random.Random(seed)
        last = tuple(prompt.split()[-2:])
        for _ in range(max_words):
            choices = self.followers.get(last) or self.followers.get(last[-1:]) or self.starts
            word = choices[int(chance.random() * len(choices))]
            if word == END:
                return
            yield word
            last = (*last[-1:], word)


def end(sender, error):
    sender.send(pb_utils.InferenceResponse(error=error), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def read(request):
    """-> prompt, max_words and seed. Throws ValueError for what cannot be."""
    prompt = pb_utils.get_input_tensor_by_name(request, "prompt").as_numpy()[0].decode()
    numbers = {"max_words": 64, "seed": 0}
    for name in numbers:
        tensor = pb_utils.get_input_tensor_by_name(request, name)
        if tensor is not None:
            numbers[name] = int(tensor.as_numpy()[0])
    if not 1 <= numbers["max_words"] <= MOST:
        raise ValueError(f"input 'max_words': {numbers['max_words']}, want 1 to {MOST}")
    return prompt, numbers["max_words"], numbers["seed"]

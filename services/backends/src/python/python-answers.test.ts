// needs: python
import { createManualClock } from '@tutti/chassis/testing'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  bytesRequestInput,
  loadPythonModel,
  pythonConfig,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

const HEAD = `
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
RESCHEDULE = pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
KEPT = []

def response(*values):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(values, np.uint8))])

def failure(error):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError("%s: %s" % (type(error).__name__, error)))

def later(call):
    threading.Thread(target=call).start()
`

/** A model whose requests each name the method of \`Cases\` that answers them, by its place. */
function casesModel(cases: readonly Case[]): string {
  const methods = cases.map(
    ({ code }, i) => `def case_${i}(self, request, sender):\n${indent(code)}`,
  )
  return pythonModel(
    `def execute(self, requests):
    out = []
    for request in requests:
        n = int(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])
        out.append(getattr(self, "case_%d" % n)(request, request.get_response_sender()))
    return out

${methods.join('\n\n')}`,
    HEAD,
  )
}

const valuesOf = (answer: RecordedResponse | undefined): number[] => [
  ...(answer?.outputs[0]?.data ?? []),
]
const indent = (code: string): string => code.replaceAll(/^/gm, '    ')

interface Case {
  readonly code: string
  /** The values of the one response, or a text that its error contains. */
  readonly want: readonly number[] | string
}

const requestOf = (...values: readonly number[]) => stepRequest([bytesRequestInput(...values)])
const LET_GO = "model 'm_0' let go of a request without a final response"

/** Python that answers with the text of what \`code\` raises. */
const raised = (code: string): string => `try:
    ${code}
except Exception as error:
    return failure(error)`

// Answers of a real Triton 2.51, except where it never answers, or ends: there the request ends with an error.
const CASES: readonly Case[] = [
  { code: 'sender.send(response(1), FINAL)', want: [1] },
  { code: 'sender.send(response(1))\nsender.send(flags=FINAL)', want: [1] },
  { code: 'later(lambda: sender.send(response(1), FINAL))', want: [1] },
  {
    code: 'later(lambda: (time.sleep(0.05), sender.send(response(1)), sender.send(flags=FINAL)))',
    want: [1],
  },
  { code: 'sender.send(pb_utils.InferenceResponse([]), FINAL)', want: [] },
  { code: 'sender.send(response(1), FINAL)\nreturn response(2)', want: [1] },
  {
    code: 'sender.send(response(1))\nreturn response(2)',
    want: 'expected a single response, got 2',
  },
  { code: 'sender.send(failure(KeyError("no")), FINAL)', want: "KeyError: 'no'" },
  { code: 'sender.send(failure(KeyError("no")))', want: "KeyError: 'no'" },
  { code: 'pass', want: LET_GO },
  { code: 'KEPT.append(request.inputs())', want: LET_GO },
  { code: 'sender.send(response(1))', want: LET_GO },
  { code: 'later(lambda: 1 / (sender is None))', want: LET_GO },
  {
    code: raised('sender.send(flags=FINAL)'),
    want: 'TritonModelException: Unable to send response. Non-decoupled model cannot send complete final before sending a response.',
  },
  {
    code: 'sender.send(response(1), FINAL)\ntry:\n    sender.send(response(2), FINAL)\nexcept pb_utils.TritonModelException as error:\n    KEPT.append(str(error))',
    want: [1],
  },
  {
    code: 'raise KeyError(KEPT[-1])',
    want: 'Non-decoupled model cannot send more than one response.',
  },
  {
    code: 'gate = threading.Event()\nKEPT.append(gate)\ndef late():\n    gate.wait()\n    try:\n        sender.send(response(2), FINAL)\n    except Exception as error:\n        KEPT.append(str(error))\n    gate.clear()\nlater(late)\nreturn response(1)',
    want: [1],
  },
  {
    code: 'gate = KEPT[-1]\ngate.set()\nwhile gate.is_set():\n    time.sleep(0.001)\nraise KeyError(KEPT[-1])',
    want: 'Non-decoupled model cannot send more than one response.',
  },
  {
    code: raised('sender.send(response(1), 4)'),
    want: 'Unable to send response. Unsupported flag provided.',
  },
  {
    code: raised('sender.send()'),
    want: 'Inference Response object must be provided when the response flags is set to zero.',
  },
  { code: raised('sender.send("text", FINAL)'), want: 'TypeError: ' },
  {
    code: 'request.set_release_flags(RESCHEDULE)',
    want: 'Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag.',
  },
  {
    code: 'request.set_release_flags(RESCHEDULE)\nreturn response(1)',
    want: "message: Expected a None object in the execute function return list for reschduled request, found type '<class",
  },
  {
    code: 'request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)\nreturn response(1)',
    want: [1],
  },
  // A response that cannot be sent is not sent: the model may send something else, and must not count as done.
  {
    code: `strange = np.array([b"a"], object)
tensor = pb_utils.Tensor("y", strange)
class Strange:
    def __str__(self):
        raise ValueError("no text")
strange[0] = Strange()
try:
    sender.send(pb_utils.InferenceResponse([tensor]), FINAL)
except ValueError:
    sender.send(response(1), FINAL)`,
    want: [1],
  },
  {
    code: `strange = np.array([b"a"], object)
tensor = pb_utils.Tensor("y", strange)
class Strange:
    def __str__(self):
        raise ValueError("no text")
strange[0] = Strange()
try:
    sender.send(pb_utils.InferenceResponse([tensor]), FINAL)
except ValueError:
    pass`,
    want: LET_GO,
  },
]

await t.test(
  'a model that is not decoupled answers by its sender or by what it returns, and every request ends',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(t, casesModel(CASES))
    for (const [i, { code, want }] of CASES.entries()) {
      const [answer] = await executeOnce(model, [requestOf(i)])
      t.equal(answer?.final, true, code)
      if (typeof want === 'string') t.match(answer?.error?.message, want, code)
      else t.same(valuesOf(answer), want, code)
    }
    const [twice, returned] = await executeOnce(model, [requestOf(5), requestOf(2)])
    t.same(valuesOf(twice), [1], 'in a batch each for itself')
    t.same(valuesOf(returned), [1])
  },
)

await t.test(
  'a model that keeps a sender and does not answer is given up after unanswered-timeout-seconds',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const clock = createManualClock()
    const model = await loadPythonModel(
      t,
      pythonModel(
        `def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    if x[0] == 1:
        KEPT.append(requests[0].get_response_sender())
        return [None]
    while not KEPT[0].is_cancelled():
        time.sleep(0.001)
    KEPT[0].send(response(1), FINAL)
    return [response(2)]`,
        HEAD,
      ),
      { clock, settings: { unansweredMs: 5000 } },
    )
    const kept = begin(model)
    await kept.released
    clock.advance(4999)
    t.same(kept.answers(), [])
    clock.advance(1)
    await kept.done
    t.same(kept.answers(), [
      "model 'm_0' did not answer a request within 5 s after 'execute' had returned",
    ])
    const [next] = await executeOnce(model, [requestOf(2)])
    t.same(valuesOf(next), [2], 'what it sends later is dropped')
    t.equal(kept.answers().length, 1)
  },
)

await t.test(
  'responses that cannot be sent do not count as on the way',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(
      t,
      pythonModel(
        `def execute(self, requests):
    class Strange:
        def __str__(self):
            raise ValueError("no text")
    strange = np.array([b"a"], object)
    tensor = pb_utils.Tensor("y", strange)
    strange[0] = Strange()
    sender = requests[0].get_response_sender()
    failed = 0
    for _ in range(20):
        try:
            sender.send(pb_utils.InferenceResponse([tensor]))
        except ValueError:
            failed += 1
    sender.send(response(failed))
    sender.send(flags=FINAL)`,
        HEAD,
      ),
      { config: pythonConfig({ model_transaction_policy: { decoupled: true } }) },
    )
    const sink = new RecordedResponses()
    const signal = new AbortController().signal
    await model.execute([{ request: requestOf(1), sink }], { instance: 0, signal })
    t.same(sink.responses.map(valuesOf), [[20], []])
  },
)

/** Executes requests of the sequences with these ids. @returns what came, by request, and which are wanted again. */
async function executeSequences(model: LoadedModel, ids: readonly number[]) {
  const again: number[] = []
  const batch = ids.map((id) => {
    const { context, ...request } = requestOf(id)
    const sink = new RecordedResponses()
    const of = { ...request, context: { ...context, correlationId: BigInt(id) } }
    return { request: of, sink, again: () => void again.push(id) }
  })
  await model.execute(batch, { instance: 0, signal: new AbortController().signal })
  const answers = batch.map(({ sink }) =>
    sink.responses.map((one) => [one.error?.message ?? valuesOf(one).join(','), one.final]),
  )
  return { answers, again }
}

await t.test(
  'a request of an iterative sequence may execute again, and is answered by any of its senders',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const config = pythonConfig({
      model_transaction_policy: { decoupled: true },
      sequence_batching: {
        max_sequence_idle_microseconds: 1000,
        control_input: [],
        state: [],
        iterative_sequence: true,
      },
    })
    const model = await loadPythonModel(
      t,
      pythonModel(
        `def initialize(self, args):
    self.kept = {}

def execute(self, requests):
    for request in requests:
        sender, sequence = request.get_response_sender(), request.correlation_id()
        if sequence == 9:
            try:
                self.kept[1].send(response(9))
            except pb_utils.TritonModelException as error:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))), FINAL)
            continue
        first = self.kept.setdefault(sequence, sender)
        if first is sender or sequence == 2:
            request.set_release_flags(RESCHEDULE)
        if first is sender:
            first.send(response(1))
        else:
            first.send(response(0 if first.is_cancelled() else sequence), FINAL)`,
        HEAD,
      ),
      { config },
    )
    const first = await executeSequences(model, [1, 2])
    t.same(first, { answers: [[['1', false]], [['1', false]]], again: [1, 2] })
    const between = await executeSequences(model, [9])
    t.match(between.answers[0], [[/^Unable to send response. The request was rescheduled/, true]])
    const second = await executeSequences(model, [1, 2])
    t.same(
      second,
      { answers: [[['1', true]], [['2', true]]], again: [] },
      'a final response is the end',
    )
  },
)

await t.test(
  'an instance is free once its responses are sent, before the execution resolves',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(
      t,
      pythonModel('def execute(self, requests):\n    return [response(2) for _ in requests]', HEAD),
    )
    const events: string[] = []
    const next: ReturnType<typeof executeOnce>[] = []
    const sink = {
      send: () => void events.push('sent'),
      fail: (error: Error) => void events.push(error.message),
    }
    const times = await model.execute([{ request: requestOf(1), sink }], {
      instance: 0,
      signal: new AbortController().signal,
      release: (released) => {
        events.push(`released after ${released?.computeInferNs} ns`)
        next.push(executeOnce(model, [requestOf(1)]))
      },
    })
    t.same(events, ['sent', `released after ${times.computeInferNs} ns`])
    const [answer] = await Promise.all(next)
    t.same(valuesOf(answer?.[0]), [2])
  },
)

/** Executes one request of 1. */
function begin(model: LoadedModel) {
  const released = Promise.withResolvers<void>()
  const sink = new RecordedResponses()
  const done = model.execute([{ request: requestOf(1), sink }], {
    instance: 0,
    signal: new AbortController().signal,
    release: () => released.resolve(),
  })
  const answers = () => sink.responses.map(({ error }) => error?.message ?? '')
  return { done, released: released.promise, answers }
}

import type { Random } from '../../attacks/random.ts'
import type { Call, Case } from '../case.ts'

const CONFIG = `backend: "python"
input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_STRING dims: [ -1 ] }
`
const DECOUPLED = 'model_transaction_policy { decoupled: true }\n'

/** Names and functions that code of models has at hand. `repeat` and `scalar` are models of the fixtures. */
const HEAD = `import asyncio, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
KEPT = []
EXECUTED = threading.Event()


def response(*said):
    texts = [str(one).encode() for one in said]
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(texts, np.object_))])


def failure(text):
    return pb_utils.InferenceResponse([], pb_utils.TritonError(text))


def number(request):
    return int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])


def call(model, name, array, output):
    return pb_utils.InferenceRequest(
        model_name=model, inputs=[pb_utils.Tensor(name, array)], requested_output_names=[output])


def repeat(count):
    return call("repeat", "COUNT", np.array([count], np.int32), "VALUE")


def scalar(value):
    return call("scalar", "X", np.array([[value]], np.float32), "Y")


def told(response):
    if response.has_error():
        return "error " + response.error().message()
    return ",".join(str(float(value)) for tensor in response.output_tensors() for value in tensor.as_numpy().reshape(-1))


def kind(act):
    try:
        return act()
    except BaseException as error:
        return type(error).__name__


def later(act):
    threading.Thread(target=lambda: (time.sleep(0.01), act()), daemon=True).start()


def background():
    # A Triton whose model calls another one at the moment in which it becomes ready may end.
    EXECUTED.wait()
    time.sleep(0.1)
    KEPT.append(told(scalar(2.0).exec()))


def waited():
    while not KEPT:
        time.sleep(0.005)
    return KEPT[0]


`

/** Expressions by which a model says what it finds, whatever it is. */
const FINDINGS = [
  'sys.argv',
  'request.parameters()',
  'told(scalar(3.0).exec())',
  '[told(one) for one in repeat(3).exec(decoupled=True)]',
  '[told(one) for one in repeat(0).exec(decoupled=True)]',
  '[told(one) for one in scalar(1.0).exec(decoupled=True)]',
  'told(call("nope", "X", np.zeros(1, np.int32), "Y").exec())',
  'told(call("scalar", "Z", np.zeros((1, 1), np.float32), "Y").exec())',
  'type(scalar(1.0).trace()).__name__',
  'pb_utils.is_model_ready("scalar")',
  'pb_utils.is_model_ready("nope")',
  'waited()',
] as const
/** The same, of coroutines. */
const AWAITED = [
  'told(await scalar(3.0).async_exec())',
  '[told(one) for one in await asyncio.gather(*[scalar(1.0 * n).async_exec() for n in range(4)])]',
  '[told(one) for one in await repeat(3).async_exec(decoupled=True)]',
  '[told(one) for one in await repeat(0).async_exec(decoupled=True)]',
  '[[told(one) for one in each] for each in await asyncio.gather(*[repeat(n).async_exec(decoupled=True) for n in range(3)])]',
  'threading.current_thread() is threading.main_thread()',
  'asyncio.get_running_loop().is_running()',
  'await asyncio.get_running_loop().run_in_executor(None, lambda: told(scalar(4.0).exec()))',
] as const
export const VALUES = [
  'None',
  '5',
  '-1',
  '2**64',
  '"x"',
  'b"x"',
  '1.5',
  '[]',
  'True',
  'object()',
] as const
/** Calls of the library that take one of the values, right or wrong: what they raise is told by its class. */
export const MISUSES = [
  ...['request_id', 'correlation_id', 'model_version', 'flags', 'timeout', 'parameters'].map(
    (name) =>
      `pb_utils.InferenceRequest(model_name="m", inputs=[], requested_output_names=[], ${name}=VALUE) and 1`,
  ),
  'pb_utils.InferenceRequest(model_name=VALUE, inputs=[], requested_output_names=[]) and 1',
  'pb_utils.InferenceRequest(model_name="m", inputs=VALUE, requested_output_names=[]) and 1',
  'pb_utils.InferenceRequest(model_name="m", inputs=[], requested_output_names=VALUE) and 1',
  'pb_utils.Tensor(VALUE, np.zeros(1, np.int32)) and 1',
  'pb_utils.Tensor("a", VALUE) and 1',
  'pb_utils.InferenceResponse(VALUE) and 1',
  'pb_utils.InferenceResponse([], VALUE) and 1',
  'pb_utils.TritonError(VALUE) and 1',
  'pb_utils.TritonError("t", VALUE) and 1',
  'pb_utils.Logger.log(VALUE)',
  'pb_utils.Logger.log("m", VALUE)',
  'pb_utils.Logger.log_verbose(VALUE)',
  'pb_utils.PreferredMemory(VALUE) and 1',
  'pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, VALUE) and 1',
  'scalar(1.0).set_flags(VALUE)',
  // An argument that means "decoupled" gives an iterator, and a Triton in which it is dropped unread may end.
  'scalar(1.0).exec(None) and 1',
  'scalar(1.0).exec("x") and 1',
  'pb_utils.get_input_tensor_by_name(request, VALUE)',
  'pb_utils.get_input_config_by_name(VALUE, "x")',
  'pb_utils.using_decoupled_model_transaction_policy(VALUE)',
] as const

/** How a model answers the request \`request\` with \`said\`; \`sender\` is the request's. */
const SENT = [
  'sender.send(response(*said), FINAL)',
  'sender.send(response(*said))\nsender.send(flags=FINAL)',
  'later(lambda: sender.send(response(*said), FINAL))',
  'sender.send(failure("as ordered"), FINAL)',
] as const
const SENT_BY_TASKS = [
  'self.tasks.append(asyncio.create_task(self.send(sender, said)))',
  'asyncio.get_running_loop().call_later(0.01, lambda: sender.send(response(*said), FINAL))',
  'await self.queued(sender, said)',
] as const
const STREAMED = [
  'for one in said:\n    sender.send(response(one))\nsender.send(flags=FINAL)',
  'sender.send(response(*said))\nsender.send(response(len(said)), FINAL)',
  'sender.send(flags=FINAL)',
] as const

interface Traits {
  readonly isAsync: boolean
  readonly isDecoupled: boolean
}

/** A model whose `execute` is made of random pieces. What would leave a request without an answer, or end Triton, is left out. */
function pythonModel(random: Random, { isAsync, isDecoupled }: Traits): string {
  const { chance, oneOf, pick } = random
  const findings = Array.from({ length: pick(3) }, () =>
    isAsync && chance(0.5)
      ? oneOf(AWAITED)
      : `kind(lambda: ${chance(0.5) ? oneOf(FINDINGS) : oneOf(MISUSES).replace('VALUE', oneOf(VALUES))})`,
  )
  const isReturned = !isDecoupled && chance(0.3)
  const ways = [...SENT, ...(isAsync ? SENT_BY_TASKS : []), ...(isDecoupled ? STREAMED : [])]
  const answer = isReturned ? 'answers.append(response(*said))' : oneOf(ways)
  const end = isReturned
    ? 'return answers'
    : oneOf(
        isDecoupled
          ? ['return None', 'raise KeyError("late")']
          : ['return None', 'return [None for _ in requests]'],
      )
  // Answers that a thread or task still gives would come after the error.
  const isLate = isDecoupled && /later|tasks|queued/.test(answer)
  const word = isAsync ? 'async def' : 'def'
  const start = chance(0.2) ? `    time.sleep(${oneOf([0.2, 1, 2])})\n` : ''
  return `${chance(0.1) ? 'time.sleep(0.5)\n\n\n' : ''}class TritonPythonModel:
    def initialize(self, args):
        self.queue = None
        self.tasks = []
        threading.Thread(target=background, daemon=True).start()
    ${start}
    async def send(self, sender, said):
        await asyncio.sleep(0.01)
        sender.send(response(*said), FINAL)

    async def queued(self, sender, said):
        if self.queue is None:
            self.queue = asyncio.Queue()
            self.task = asyncio.create_task(self.work())
        await self.queue.put((sender, said))

    async def work(self):
        while True:
            sender, said = await self.queue.get()
            sender.send(response(*said), FINAL)

    ${word} execute(self, requests):
        EXECUTED.set()
        answers = []
        for request in requests:
            sender = request.get_response_sender()
            said = [number(request)${findings.map((one) => `, ${one}`).join('')}]
            ${answer.replaceAll('\n', '\n            ')}
        ${isLate ? 'return None' : end}
`
}

/** A model whose code stands behind what all of them have at hand. */
export function pythonFiles(
  name: string,
  code: string,
  isDecoupled = false,
): Readonly<Record<string, string>> {
  return {
    [`${name}/config.pbtxt`]: `${CONFIG}${isDecoupled ? DECOUPLED : ''}`,
    [`${name}/1/model.py`]: `${HEAD}${code}`,
  }
}

/** A Python model, asynchronous or not, that answers by what it returns, by senders or by tasks, and what it finds. */
export function pythonCase(seed: number, random: Random): Omit<Case, 'id'> {
  const { chance, pick } = random
  const name = `py_${seed}`
  const traits = { isAsync: chance(0.6), isDecoupled: chance(0.4) }
  const files = pythonFiles(name, pythonModel(random, traits), traits.isDecoupled)
  const infer = (): Call => ({
    rpc: traits.isDecoupled ? 'ModelStreamInfer' : 'ModelInfer',
    requests: [requestOf(name, pick(100))],
    isUnordered: true,
  })
  const load = { rpc: 'RepositoryModelLoad', requests: [{ model_name: name }] }
  const calls = Array.from({ length: 1 + pick(3) }, infer)
  return { files, calls: [load, ...calls] }
}

export function requestOf(model: string, value: number) {
  const data = Buffer.alloc(4)
  data.writeInt32LE(value)
  return {
    model_name: model,
    inputs: [{ name: 'X', datatype: 'INT32', shape: [1] }],
    raw_input_contents: [data.toString('base64')],
  }
}

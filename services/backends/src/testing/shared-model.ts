import type { LoadedModel } from '../engine.ts'
import { executeOnce } from './execute.ts'
import { stepRequest } from './model-source.ts'
import type { Teardown } from './python-model.ts'
import {
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonModel,
} from './python-model.ts'

/** Module globals are shared; each instance answers the order in `x`, the name of a method, with a text. */
export const SHARED_HEAD = `
import asyncio, contextvars, json
from concurrent.futures import ThreadPoolExecutor

IMPORTED = []
IMPORTED.append(threading.get_ident())
INSTANCES = []
MET = threading.Barrier(4)
KEPT = {}

def told(what):
    text = what if isinstance(what, str) else json.dumps(what)
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(text.encode(), np.uint8))])

def call(name, value=1, **more):
    return pb_utils.InferenceRequest(
        model_name=name, inputs=[pb_utils.Tensor("a", np.array([value], np.uint8))], requested_output_names=["b"], **more)

def got(response):
    if response.has_error():
        return response.error().message()
    return int(response.output_tensors()[0].as_numpy()[0])

def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(function).result()
        except pb_utils.TritonModelException as error:
            return str(error)
`
const METHODS = `def initialize(self, args):
    self.name = args["model_instance_name"]
    self.thread = threading.get_ident()
    INSTANCES.append(self.name)

def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    return getattr(self, bytes(x).decode())(requests)

def who(self, requests):
    return [told({"pid": os.getpid(), "instance": self.name, "thread": threading.get_ident(), "own": self.thread == threading.get_ident(),
        "imports": len(IMPORTED), "importer": IMPORTED[0], "instances": INSTANCES, "dir": pb_utils.get_model_dir()[-4:]})]

def exit(self, requests):
    os._exit(3)

def kill(self, requests):
    os.kill(os.getpid(), signal.SIGKILL)

def crash(self, requests):
    import ctypes
    ctypes.string_at(0)

def spin(self, requests):
    while True:
        pass

def meet(self, requests):
    MET.wait(30)
    return [told("met")]

def sleep(self, requests):
    time.sleep(600)

def log(self, requests):
    pb_utils.Logger.log_info("from " + self.name)
    in_thread(lambda: pb_utils.Logger.log_info("a thread of " + self.name))
    return [told("")]

def bls(self, requests):
    made = call("echo")
    context = contextvars.copy_context()
    return [told([
        got(call("echo", trace=requests[0].trace()).exec()),
        in_thread(lambda: got(made.exec())),
        in_thread(lambda: context.run(lambda: got(call("echo").exec()))),
        in_thread(lambda: got(call("echo").exec()))])]

def keep(self, requests):
    KEPT["request"] = requests[0]
    KEPT["made"] = call("echo", trace=requests[0].trace())
    return [told("kept")]

def use(self, requests):
    return [told(got(KEPT.pop("made").exec()))]

def finalize(self):
    print("bye", self.name, flush=True)
`
/** A model whose instances share what stands before the class. */
export const SHARED_CODE = pythonModel(METHODS, SHARED_HEAD)
const AT_ONCE = { restartFirstMs: 0, restartLongestMs: 0 }
/** The instances. */
export const ALL = [0, 1, 2, 3] as const

/** A request. */
export const order = (text: string) => stepRequest([bytesRequestInput(...Buffer.from(text))])

/** Four instances in one process. */
export function loadShared(
  t: Teardown,
  code = SHARED_CODE,
  { load, settings, ...o }: PythonTestOptions = {},
): Promise<LoadedModel> {
  return loadPythonModel(t, code, {
    ...o,
    settings: { ...AT_ONCE, ...settings },
    load: { instances: 4, sharesInterpreter: true, ...load },
  })
}

/** Asks an instance and returns its answer; with `!` before an error. */
export async function answerOf(model: LoadedModel, text: string, instance = 0): Promise<string> {
  const [response] = await executeOnce(model, [order(text)], instance)
  if (response?.error !== undefined) return `!${response.error.message}`
  return Buffer.from(response?.outputs[0]?.data ?? []).toString()
}

/** As `answerOf`, of all at the same time. */
export const answersOf = (model: LoadedModel, text: string) =>
  Promise.all(ALL.map((instance) => answerOf(model, text, instance)))

/** The report of an instance on itself. */
export interface Who {
  readonly pid: number
  readonly instance: string
  readonly thread: number
  readonly own: boolean
  readonly imports: number
  readonly importer: number
  readonly instances: readonly string[]
  readonly dir: string
}

/** Asks all instances who they are, after all have started. */
export async function whoAnswers(model: LoadedModel): Promise<readonly Who[]> {
  // One that has started answers while others still start.
  await answersOf(model, 'who')
  return (await answersOf(model, 'who')).map((text): Who => JSON.parse(text))
}

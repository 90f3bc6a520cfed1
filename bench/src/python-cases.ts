import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InferenceClient } from '@tutti/protocol/client'
import { askByRest, type Form, type Ports, type Request } from './forms.ts'
import { ROOT } from './servers.ts'

const ENSEMBLE = 'ens_face_restoration_v2.1'
const NUMPY_ENSEMBLE = 'numpy_face'
/** The face system, and what it is called in NumPy. */
const NUMPY: Readonly<Record<string, string>> = {
  [ENSEMBLE]: NUMPY_ENSEMBLE,
  pre_gfpgan: 'numpy_pre',
  'infer_face_restoration_v2.1': 'numpy_infer',
  post_gfpgan: 'numpy_post',
}
const MODELS = join(ROOT, 'model_repository')
const ADD_SUB = 'py_add_sub'
const SIDE = 512

/** A request that servers of Python models are compared with. */
export interface PythonCase {
  /** Key of its ratios in history.json. */
  readonly key: string
  readonly name: string
  readonly request: Request
  readonly form: Form
  readonly inFlight: readonly [number, number, number]
  /** How long a server answers before it is measured, in milliseconds: V8 compiles until then. */
  readonly warmUpMs: number
  /** Models of a chain, and the shape of the first one's input. */
  readonly chain?: { readonly models: readonly string[]; readonly shape: readonly number[] }
}

/** In the order in which the ensemble runs them. */
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
const SHAPE = [SIDE, SIDE, 3]

const integers = new Uint8Array(Int32Array.from({ length: 16 }, (_, i) => i).buffer)
const pixels = Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24)

export const PYTHON_CASES: readonly [PythonCase, PythonCase] = [
  {
    key: 'add/sub',
    name: 'add/sub of 16 integers',
    request: {
      modelName: ADD_SUB,
      inputs: ['INPUT0', 'INPUT1'].map((name) => ({
        name,
        datatype: 'INT32',
        shape: [1, 16],
        data: integers,
      })),
    },
    form: 'gRPC',
    inFlight: [1, 16, 64],
    warmUpMs: 6000,
  },
  {
    key: 'face',
    name: `three face steps at ${SIDE} x ${SIDE}, ONNX Runtime in model.py`,
    request: faceRequest(ENSEMBLE),
    form: 'gRPC',
    inFlight: [1, 4, 16],
    // NumPy alone, which comes before, takes the same way through the server.
    warmUpMs: 1000,
    chain: { models: STEPS, shape: SHAPE },
  },
]

/** The case of the models that `addNumpyModels` adds. */
export const NUMPY_CASE: PythonCase = {
  key: 'numpy face',
  name: `three face steps at ${SIDE} x ${SIDE}, NumPy alone`,
  request: faceRequest(NUMPY_ENSEMBLE),
  form: 'gRPC',
  inFlight: [1, 4, 16],
  warmUpMs: 6000,
  chain: { models: STEPS.map((name) => NUMPY[name] ?? name), shape: SHAPE },
}

/** The case of small requests by REST. */
export const REST_CASES: readonly PythonCase[] = (['REST JSON', 'REST binary'] as const).map(
  (form) => ({
    ...PYTHON_CASES[0],
    key: `add/sub, ${form}`,
    name: `add/sub of 16 integers, ${form}`,
    form,
  }),
)

function faceRequest(modelName: string): Request {
  const shape = SHAPE
  return { modelName, inputs: [{ name: 'raw_image', datatype: 'UINT8', shape, data: pixels }] }
}

/** The add/sub model as it is, and the face system with each ONNX file run by a model.py. */
export async function writeRepository(opened: AsyncDisposableStack): Promise<string> {
  const repository = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  opened.defer(() => rm(repository, { recursive: true }))
  const fixture = join(MODELS, '.variants', 'fixtures', 'python', ADD_SUB)
  await cp(fixture, join(repository, ADD_SUB), { recursive: true })
  await cp(join(MODELS, ENSEMBLE), join(repository, ENSEMBLE), { recursive: true })
  for (const step of STEPS) {
    await cp(join(MODELS, step), join(repository, step), { recursive: true })
    await writeModel(join(repository, step), 'onnx_model.py')
  }
  return repository
}

/** Adds the face system in NumPy. */
export async function addNumpyModels(repository: string): Promise<void> {
  await writeNumpy(repository, ENSEMBLE)
  for (const step of STEPS) {
    await writeNumpy(repository, step)
    await writeModel(join(repository, NUMPY[step] ?? ''), 'numpy_model.py')
  }
}

/** A model of the face system, without its files, by the name of the one in NumPy. */
async function writeNumpy(repository: string, name: string): Promise<void> {
  const folder = join(repository, NUMPY[name] ?? '')
  await mkdir(join(folder, '1'), { recursive: true })
  let text = await readFile(join(MODELS, name, 'config.pbtxt'), 'utf8')
  for (const [from, to] of Object.entries(NUMPY)) text = text.replaceAll(`"${from}"`, `"${to}"`)
  await writeFile(join(folder, 'config.pbtxt'), text)
}

/** Has a model run a file of bench/python. */
async function writeModel(folder: string, program: string): Promise<void> {
  await cp(join(ROOT, 'bench', 'python', program), join(folder, '1', 'model.py'))
  const config = join(folder, 'config.pbtxt')
  const text = await readFile(config, 'utf8')
  await writeFile(config, text.replace('platform: "onnxruntime_onnx"', 'backend: "python"'))
}

const WARM_UPS = 10

/** A server, and a client of it. */
export interface Asked extends Ports {
  readonly client: InferenceClient
}

/** Asks both some times. @throws Error if the bytes differ. */
export async function compareAnswers(
  { name, form, request }: PythonCase,
  ours: Asked,
  theirs: Asked,
): Promise<void> {
  const ask = (server: Asked): Promise<Buffer> =>
    form === 'gRPC' ? bytesOf(server.client, request) : askByRest(form, server, request)
  for (let i = 0; i < WARM_UPS; i += 1) {
    const [one, other] = [await ask(ours), await ask(theirs)]
    if (Buffer.compare(one, other) !== 0) throw new Error(`${name}: the two gave other bytes`)
  }
}

async function bytesOf(client: InferenceClient, request: Request): Promise<Buffer> {
  const { outputs } = await client.infer(request)
  const sorted = outputs.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  return Buffer.concat(sorted.map(({ data }) => data))
}

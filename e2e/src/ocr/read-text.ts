import { cp, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { restCall } from '../rest-call.ts'
import { restInfer, restOutputs } from '../rest-infer.ts'
import { ROOT, runProgram, type Target } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import type { Tensor } from '../tensors.ts'

/** Python with the program that the example is compared with, and a folder with the networks of both. */
const PYTHON = env['TUTTI_OCR_PYTHON']
const NETWORKS = env['TUTTI_OCR_NETWORKS']
/** Why the tests of reading text cannot run here, or false. */
export const WITHOUT_OCR =
  PYTHON === undefined && (env['TUTTI_OCR_MISSING'] ?? 'TUTTI_OCR_PYTHON is not set')

export const EXAMPLE = `${ROOT}examples/read-text`
export const READ_TEXT_MANIFEST = `${EXAMPLE}/manifest.yaml`

/** Puts the networks beside their configurations. @returns the folder, and the flag that has the manifest's storage there. */
export async function placeNetworks(t: Test) {
  const folder = await tempFolder(t)
  await cp(`${EXAMPLE}/models`, folder, { recursive: true })
  await cp(NETWORKS ?? '', folder, { recursive: true })
  return {
    folder,
    flag: `--storage-map=image://tutti/samples:0.1.0/examples/read-text/models=${folder}`,
  }
}

/** Runs a script of this folder, with the Python of the comparison. @returns what it writes. */
export async function runOcrScript(name: string, ...args: readonly string[]): Promise<string> {
  const script = fileURLToPath(new URL(name, import.meta.url))
  const { code, out, err } = await runProgram(PYTHON ?? '', [script, ...args])
  if (code !== 0) throw new Error(`${name}: ${err}`)
  return out
}

/** Renders pictures. @param lines - of text in each; some if absent. @returns their bytes, by name. */
export async function renderPictures(t: Test, count: number, lines?: number) {
  const folder = await tempFolder(t)
  const counts = lines === undefined ? [count] : [count, lines]
  await runOcrScript('render_pictures.py', folder, ...counts.map(String))
  const names = (await readdir(folder)).filter((name) => name.endsWith('.png')).toSorted()
  const files = await Promise.all(
    names.map(async (name) => [name, await readFile(join(folder, name))] as const),
  )
  return { folder, files: new Map(files) }
}

/** The input of the Ensemble. */
export function fileTensor(picture: Buffer): Tensor {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(picture.byteLength)
  return { name: 'file', datatype: 'BYTES', shape: [1], data: Buffer.concat([length, picture]) }
}

/** Asks the Ensemble what a picture says. @throws Error if the answer is no success. */
export async function readTexts(target: Target, picture: Buffer): Promise<readonly string[]> {
  const outputs = restOutputs(await restInfer(target, 'read_text', [fileTensor(picture)]))
  return elementsOf(outputs.get('text') ?? Buffer.alloc(0))
}

function elementsOf(data: Buffer): string[] {
  const found: string[] = []
  for (let at = 0; at < data.byteLength; ) {
    const end = at + 4 + data.readUInt32LE(at)
    found.push(data.toString('utf8', at + 4, end))
    at = end
  }
  return found
}

/** Counts the executions of a model, and the requests in them. */
export async function executionsOf(target: Target, model: string) {
  const answer = await restCall(target.httpPort, 'GET', `/v2/models/${model}/stats`)
  const { model_stats: stats }: ModelStatistics = JSON.parse(answer.body.toString())
  const [only] = stats
  return { executions: only?.execution_count ?? 0, rows: only?.inference_count ?? 0 }
}

interface ModelStatistics {
  readonly model_stats: readonly {
    readonly execution_count: number
    readonly inference_count: number
  }[]
}

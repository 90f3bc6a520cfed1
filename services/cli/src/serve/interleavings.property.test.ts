import { access, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Engine, EngineRequest, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { parseFlags } from '@tutti/chassis'
import type { ModelVersionSource } from '@tutti/model-config'
import type { ResolvedModel } from '@tutti/serving'
import { EMPTY_CONTEXT } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { openServedModels } from '../testing/open-served-models.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

/*
 * Loads, unloads, changes on disk and requests in any order and overlap, against a model of the allowed answers:
 * the contents that the newest finished load found, or those that a load under way may have put in their place; nothing else,
 * and no error but that the model is not there, when it may not be.
 */

const IO = `input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }`
const MODEL = `backend: "adder" ${IO}`
const step = (x: string, y: string): string =>
  `step { model_name: "m" model_version: -1 input_map { key: "x" value: "${x}" } output_map { key: "y" value: "${y}" } }`
const ENSEMBLE = `platform: "ensemble" ${IO}
ensemble_scheduling { ${step('x', 'middle')} ${step('middle', 'y')} }`
const OVERRIDE = JSON.stringify({
  backend: 'adder',
  input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [1] }],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [1] }],
})

/** Adds the number in its file to the input, some turns of the event loop later. */
class AdderEngine implements Engine {
  readonly backend = 'adder'
  /** Directories of the loaded models. */
  readonly open = new Map<object, string>()
  readonly directories = new Set<string>()

  inspect(): Promise<never> {
    return Promise.reject(new Error('not asked'))
  }

  async load({ versionDirectory }: ModelVersionSource): Promise<LoadedModel> {
    const added = Number(await readFile(join(versionDirectory, 'f'), 'utf8'))
    const { open } = this
    this.directories.add(versionDirectory)
    const model: LoadedModel = {
      execute: async (batch) => {
        await turns(added % 4)
        // The files that the model was loaded from must be there as long as it is.
        await access(join(versionDirectory, 'f'))
        if (!open.has(model)) throw new Error('a closed model was executed')
        return answer(batch, added)
      },
      close: async () => {
        await turns(2)
        open.delete(model)
      },
    }
    this.open.set(model, versionDirectory)
    return model
  }
}

function answer(batch: readonly EngineRequest[], added: number): ExecutionTimes {
  for (const { request, sink } of batch) {
    const [x] = request.inputs
    if (x === undefined) throw new Error('no input')
    const sum = Float32Array.of(toNumber(x.data) + added)
    const y = { ...x, name: 'y', data: new Uint8Array(sum.buffer) }
    sink.send({ index: 0, final: true, outputs: [y], parameters: new Map() })
  }
  return { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
}

function toNumber(data: Uint8Array): number {
  return new Float32Array(data.slice().buffer)[0] ?? Number.NaN
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate)
}

/** The answers that a name may give: numbers that are added, or undefined for "it is not there". */
type Answers = ReadonlySet<number | undefined>

/** A load that was begun: what it may find, and whether an unload overtook it. */
interface OpenLoad {
  readonly found: Set<number>
  /** Loads at the same time: which of them comes last is not said. */
  readonly beside: Set<OpenLoad>
  isDead: boolean
}

/** The expectation of what may be served, from what was asked for so far. */
class Expectation {
  #base: Answers = new Set([undefined])
  readonly #open = new Set<OpenLoad>()
  onDisk = 0

  get answers(): Answers {
    return new Set([...this.#base, ...[...this.#open].flatMap(({ found }) => [...found])])
  }

  wrote(contents: number): void {
    this.onDisk = contents
  }

  begin(contents: readonly number[]): OpenLoad {
    const load = { found: new Set(contents), beside: new Set(this.#open), isDead: false }
    for (const other of this.#open) other.beside.add(load)
    this.#open.add(load)
    return load
  }

  /** Loads that read the disk may find what is written while they are under way. */
  alsoFind(contents: number, loads: Iterable<OpenLoad>): void {
    for (const load of loads) load.found.add(contents)
  }

  end(load: OpenLoad): void {
    this.#open.delete(load)
    if (load.isDead) return
    const others = [...load.beside].filter(({ isDead }) => !isDead)
    this.#base = new Set([load, ...others].flatMap(({ found }) => [...found]))
  }

  unload(): void {
    this.#base = new Set([undefined])
    for (const load of this.#open) {
      load.isDead = true
      this.#open.delete(load)
    }
  }
}

type Command =
  | { readonly do: 'write'; readonly contents: number }
  | { readonly do: 'load' | 'unload' | 'infer'; readonly name: 'm' | 'e' }
  | { readonly do: 'override'; readonly contents: number }
  | { readonly do: 'wait'; readonly turns: number }

const contents = fc.integer({ min: 1, max: 9 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('write' as const), contents }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('load', 'load', 'unload', 'infer', 'infer', 'infer'),
      name: fc.constantFrom('m', 'e'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('override' as const), contents }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), turns: fc.nat(12) }),
  },
)

/** A server over one model and one ensemble of it twice, with what is expected of it. */
async function open(t: Test, directory: string) {
  const engine = new AdderEngine()
  const { values } = parseFlags(SERVE_FLAGS, [
    `--model-repository=${directory}`,
    '--model-control-mode=explicit',
  ])
  const server = await openServedModels({ flags: values, engines: new Map([['adder', engine]]) })
  t.teardown(() => server.close())
  return { engine, server, run: new Run(server, directory) }
}

class Run {
  readonly #server: Awaited<ReturnType<typeof openServedModels>>
  readonly #file: string
  readonly #model = new Expectation()
  #isEnsembleWanted: 'yes' | 'no' | 'maybe' = 'no'
  /** Unloads of the ensemble so far. */
  #unloads = 0
  readonly #fromDisk = new Set<OpenLoad>()
  readonly #pending: Promise<void>[] = []

  constructor(server: Awaited<ReturnType<typeof openServedModels>>, directory: string) {
    this.#server = server
    this.#file = join(directory, 'm/1/f')
  }

  async apply(commands: readonly Command[]): Promise<void> {
    for (const one of commands) await this.#apply(one)
    await Promise.all(this.#pending)
  }

  async #apply(one: Command): Promise<void> {
    if (one.do === 'wait') return turns(one.turns)
    if (one.do === 'write') {
      this.#model.wrote(one.contents)
      this.#model.alsoFind(one.contents, this.#fromDisk)
      // At one go: a load that reads half of a file is its user's to avoid.
      await writeFile(`${this.#file}~`, String(one.contents))
      return rename(`${this.#file}~`, this.#file)
    }
    if (one.do === 'infer') this.#pending.push(this.#infer(one.name))
    else if (one.do === 'unload') this.#pending.push(this.#unload(one.name))
    else if (one.do === 'override') this.#pending.push(this.#override(one.contents))
    else this.#pending.push(this.#load(one.name))
    return undefined
  }

  async #load(name: 'm' | 'e'): Promise<void> {
    // An ensemble leaves a model alone that was loaded with files of a request.
    const kept = name === 'e' ? [...this.#model.answers].filter((n) => n !== undefined) : []
    const load = this.#model.begin([this.#model.onDisk, ...kept])
    this.#fromDisk.add(load)
    if (name === 'e') this.#isEnsembleWanted = 'maybe'
    const unloads = this.#unloads
    const error = await this.#server.router.control
      ?.load(name, { files: new Map() })
      .then(() => undefined)
      .catch((thrown: Error) => thrown)
    this.#fromDisk.delete(load)
    const isExcused = name === 'e' && unloads < this.#unloads
    if (!isExcused) this.#checkLoad(error, load)
    this.#model.end(load)
    if (name === 'e' && !isExcused && error === undefined) this.#isEnsembleWanted = 'yes'
  }

  async #override(added: number): Promise<void> {
    const load = this.#model.begin([added])
    const files = new Map([['1/f', Buffer.from(String(added))]])
    const error = await this.#server.router.control
      ?.load('m', { config: OVERRIDE, files })
      .then(() => undefined)
      .catch((thrown: Error) => thrown)
    this.#checkLoad(error, load)
    this.#model.end(load)
  }

  /** A load fails only if an unload came while it went on. */
  #checkLoad(error: Error | undefined, load: OpenLoad): void {
    if (error !== undefined && !load.isDead) throw error
  }

  async #unload(name: 'm' | 'e'): Promise<void> {
    if (name === 'm') this.#model.unload()
    else {
      this.#unloads += 1
      this.#isEnsembleWanted = 'maybe'
    }
    await this.#server.router.control?.unload(name, { unloadDependents: false })
  }

  async #infer(name: 'm' | 'e'): Promise<void> {
    const answers = this.#model.answers
    const mayBeAbsent = answers.has(undefined) || (name === 'e' && this.#isEnsembleWanted !== 'yes')
    const mayBeThere = name === 'm' || this.#isEnsembleWanted !== 'no'
    const got = await this.#answerOf(name)
    const added = got === undefined || name === 'm' ? got : got / 2
    const isGood = added === undefined ? mayBeAbsent : mayBeThere && answers.has(added)
    if (isGood) return
    const expected = [...answers].map(String).join()
    throw new Error(
      `${name} was ${added}, want one of ${expected}, ensemble ${this.#isEnsembleWanted}`,
    )
  }

  /** Finds the number that is added, or undefined if the model is not there. */
  async #answerOf(name: string): Promise<number | undefined> {
    const data = new Uint8Array(Float32Array.of(0).buffer)
    const inputs = [{ name: 'x', datatype: 'FP32' as const, shape: [1], data }]
    let resolved: ResolvedModel
    try {
      resolved = this.#server.router.resolve(name, '')
    } catch {
      return undefined
    }
    const { signal } = new AbortController()
    for await (const { outputs } of responsesTo(
      resolved,
      { context: EMPTY_CONTEXT, inputs, requestedOutputs: [] },
      { signal },
    )) {
      return outputs[0] === undefined ? Number.NaN : toNumber(outputs[0].data)
    }
    return Number.NaN
  }
}

await t.test('any order of loads, unloads and requests', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
      const directory = t.testdir({
        m: { 'config.pbtxt': MODEL, 1: { f: '0' } },
        e: { 'config.pbtxt': ENSEMBLE, 1: { '.keep': '' } },
      })
      const { engine, server, run } = await open(t, directory)
      await run.apply(commands)
      for (const name of ['e', 'm'])
        await server.router.control?.unload(name, { unloadDependents: false })
      while (engine.open.size > 0) await turns(1)
      if (server.step.retired().length > 0) throw new Error('something stays retired')
      await server.close()
      for (const used of engine.directories) {
        if (used.startsWith(directory)) continue
        const isGone = await access(used).then(
          () => false,
          () => true,
        )
        if (!isGone) throw new Error(`${used} is left behind`)
      }
    }),
    { numRuns: 60 },
  )
  t.pass()
})

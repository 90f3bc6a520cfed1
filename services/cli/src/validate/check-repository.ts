import { createEngines } from '@tutti/backends'
import { silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type CheckedConfig,
  checkConfig,
  type KnownModel,
  modelsOf,
  readConfigGraph,
} from '@tutti/graph'
import {
  faultsWhenRead,
  isEnsembleConfig,
  locateModelConfig,
  type ModelConfig,
  normaliseModelConfig,
  selectVersions,
  validateWhenLoaded,
} from '@tutti/model-config'
import { type RepositoryModel, readLabels, scanRepositories } from '@tutti/repository'
import { findModelFaults } from '@tutti/step'
import type { Problem } from '../manifests/parse-manifests.ts'
import { refusingUnreadable } from '../manifests/repository-configs.ts'
import type { Report } from './report.ts'

/** A fault, and the field that it is about. */
interface Fault {
  readonly reason: string
  /** Into config.pbtxt; '' for the whole. */
  readonly path: string
  readonly message: string
}

/** A model of the repositories, with what is wrong with it alone. */
interface CheckedModel {
  readonly model: RepositoryModel
  readonly kind: 'Model' | 'Ensemble'
  readonly config: ModelConfig | undefined
  readonly faults: readonly Fault[]
  readonly positionOf: (field: string) => Pick<Problem, 'line' | 'column'>
}

/**
 * Checks model repositories as a server reads them, and plans their ensembles. Nothing is loaded, and no code of a model runs.
 *
 * @throws ServeError FLAG_INVALID for a repository that cannot be read.
 */
export async function checkRepositories(paths: readonly string[]): Promise<Report> {
  const scanned = await refusingUnreadable(() => scanRepositories(paths))
  const engines = createEngines({ log: silentLogger })
  const models = new Map<string, CheckedModel>()
  for (const model of scanned) models.set(model.name, await checkOne(model, engines))
  const ensembles = new RepositoryEnsembles(models)
  const found = [...models.values()].flatMap((checked) => {
    // Triton checks some rules twice: when it reads a config, and for an ensemble.
    const told = new Set(checked.faults.map(({ message }) => message))
    const all = checked.kind === 'Ensemble' ? ensembles.check(checked) : []
    const graph = all.filter(({ message }) => !told.has(message))
    return [...checked.faults, ...graph].map((fault) => toProblem(checked, fault))
  })
  return {
    checked: models.size,
    foreign: 0,
    problems: found.filter((problem) => !isNote(problem)),
    notes: found.filter(isNote),
  }
}

function isNote({ reason }: Problem): boolean {
  return reason === 'SchemaPending'
}

async function checkOne(
  model: RepositoryModel,
  engines: ReturnType<typeof createEngines>,
): Promise<CheckedModel> {
  const whole = { model, kind: 'Model', config: undefined, positionOf: () => START } as const
  if (model.error !== undefined) {
    const faults = [{ reason: 'RepositoryUnreadable', path: '', message: model.error }]
    return { ...whole, faults }
  }
  let located: ReturnType<typeof locateModelConfig> | undefined
  try {
    const { configText: text, configPath } = model
    located = text === undefined ? undefined : locateModelConfig(text, configPath)
  } catch (error) {
    return { ...whole, ...readSyntaxError(ServeError.from(error).message) }
  }
  const positionOf = located?.positionOf ?? (() => START)
  if (located !== undefined && isEnsembleConfig(located.config)) {
    return { ...whole, ...(await checkEnsemble(model, located.config)), positionOf }
  }
  const { config, faults } = (await findModelFaults(model, engines)) ?? { faults: [] }
  return { ...whole, config, faults: faults.map(toFault), positionOf }
}

const START = { line: 1, column: 1 }

/** Reads the place of a syntax error from the parser's text. */
function readSyntaxError(text: string): Pick<CheckedModel, 'faults' | 'positionOf'> {
  const [, line = '1', column = '1', message = text] =
    /: line (\d+), column (\d+): ([\s\S]*)$/.exec(text) ?? []
  return {
    faults: [{ reason: 'SyntaxError', path: '', message }],
    positionOf: () => ({ line: Number(line), column: Number(column) }),
  }
}

/** Checks what an ensemble says beside its graph. */
async function checkEnsemble(
  model: RepositoryModel,
  parsed: ModelConfig,
): Promise<Pick<CheckedModel, 'kind' | 'config' | 'faults'>> {
  const config = normaliseModelConfig({ ...parsed, name: parsed.name || model.name })
  const errors = [...faultsWhenRead(config, model.name)]
  for (const check of [
    async () => validateWhenLoaded(config),
    () => readLabels(model, config.output),
    async () => selectVersions(config, model.versions),
  ]) {
    try {
      await check()
    } catch (error) {
      errors.push(ServeError.from(error))
    }
  }
  return { kind: 'Ensemble', config, faults: errors.map(toFault) }
}

/** Converts an error to a fault. `CONFIG_INVALID` becomes `ConfigInvalid`, as reasons of conditions are written. */
function toFault({ reason, message, details }: ServeError): Fault {
  const words = reason.toLowerCase().split('_')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return { reason: name, path: details.field ?? '', message }
}

function toProblem({ model, kind, positionOf }: CheckedModel, fault: Fault): Problem {
  const file = model.configText === undefined ? model.directory : model.configPath
  const { path, reason, message } = fault
  return { file, ...positionOf(path), resource: `${kind}/${model.name}`, path, reason, message }
}

/** The ensembles of repositories, each checked once. */
class RepositoryEnsembles {
  readonly #models: ReadonlyMap<string, CheckedModel>
  readonly #results = new Map<string, CheckedConfig>()

  constructor(models: ReadonlyMap<string, CheckedModel>) {
    this.#models = models
  }

  check({ model, config }: CheckedModel): CheckedConfig['problems'] {
    return config === undefined ? [] : this.#check(model.name, config).problems
  }

  #check(name: string, config: ModelConfig): CheckedConfig {
    const known = this.#results.get(name)
    if (known !== undefined) return known
    const result = checkConfig(config, {
      lookup: (other) => this.#lookup(other),
      names: () => [...this.#models.keys()].filter((other) => other !== name),
      composes: (other) => {
        const found = this.#models.get(other)?.config
        return found === undefined ? [] : modelsOf(readConfigGraph(found))
      },
    })
    this.#results.set(name, result)
    return result
  }

  #lookup(name: string): KnownModel | 'unknown' | 'faulty' {
    const found = this.#models.get(name)
    if (found === undefined) return 'unknown'
    const { config, kind, model } = found
    if (config === undefined) return 'faulty'
    const readyVersions = servedVersions(config, model)
    if (readyVersions.length === 0) return 'faulty'
    // An ensemble that contains itself is refused before anything is looked up, so this ends.
    if (kind === 'Ensemble') return { config: this.#check(name, config).config, readyVersions }
    if (config.input.length > 0 && config.output.length > 0) return { config, readyVersions }
    return found.faults.length === 0 ? { config, readyVersions, isPending: true } : 'faulty'
  }
}

/** Lists the served versions; none if the policy finds none, which is a problem of the model itself. */
function servedVersions(config: ModelConfig, model: RepositoryModel): readonly number[] {
  try {
    return selectVersions(config, model.versions)
  } catch {
    return []
  }
}

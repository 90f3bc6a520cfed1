import { ServeError } from '@tutti/errors'
import { formatModelVersion, type ModelConfig, parseModelVersion } from '@tutti/model-config'
import type { ListedModel } from './listed-model.ts'

/** A version of a listed model that takes requests. */
export interface FoundVersion<M extends ListedModel> {
  readonly model: M
  readonly config: ModelConfig
  readonly version: M['versions'][number]
}

/**
 * Finds the version that a request for `name` gets.
 *
 * @param version - as the client wrote it; '' is the highest READY one.
 * @throws ServeError with the lookup texts of triton-semantics 4.5.
 */
export function findModel<M extends ListedModel>(
  models: ReadonlyMap<string, M>,
  name: string,
  version: string,
): FoundVersion<M> {
  return findVersion(models, name, parseModelVersion(version), version)
}

/**
 * Finds a version as `findModel` does.
 *
 * @param version - parsed; undefined is the highest READY one.
 * @param written - the version as the client wrote it, for the error.
 */
export function findVersion<M extends ListedModel>(
  models: ReadonlyMap<string, M>,
  name: string,
  version: number | undefined,
  written = String(version),
): FoundVersion<M> {
  const model = models.get(name)
  if (model?.config === undefined) {
    throw notFound(`Request for unknown model: '${name}' is not found`, name)
  }
  const { config } = model
  if (version === undefined) {
    const latest = model.versions.findLast((v) => v.state === 'READY')
    if (latest !== undefined)
      return { model, config: latest.own?.config ?? config, version: latest }
    throw notFound(`Request for unknown model: '${name}' has no available versions`, name)
  }
  const found = model.versions.find((v) => v.version === version)
  if (found === undefined) {
    const wanted = formatModelVersion(written)
    throw notFound(`Request for unknown model: '${name}' version ${wanted} is not found`, name)
  }
  if (found.state !== 'READY') {
    throw new ServeError(
      'MODEL_NOT_READY',
      `Request for unknown model: '${name}' version ${version} is not at ready state`,
      { details: { model: name, version: String(version) } },
    )
  }
  return { model, config: found.own?.config ?? config, version: found }
}

function notFound(message: string, model: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', message, { details: { model } })
}

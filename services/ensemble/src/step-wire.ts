import { type Json, toJsonConfig } from '@tutti/model-config'
import { z } from 'zod'
import type { ServedModel, StepDescription } from './step-contract.ts'
import { ConfigJson, parseWire } from './wire-field.ts'

/*
 * What a step process answers, as JSON between processes. Members that only newer peers know are dropped, so that versions of
 * one installation can be mixed while it is upgraded.
 */

const VersionJson = z.object({
  version: z.int().min(0),
  revision: z.string(),
  state: z.enum(['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE']),
  reason: z.string(),
  judgesReadiness: z.boolean().optional(),
})

const ModelJson = z.object({
  name: z.string(),
  config: ConfigJson.optional(),
  /** Pairs and no object: `__proto__` is a name like any other. */
  labels: z.array(z.tuple([z.string(), z.array(z.string())])),
  versions: z.array(VersionJson),
  reason: z.string(),
})

const DescriptionJson = z.object({
  replica: z.string(),
  models: z.array(ModelJson),
})

/** A step's description as JSON. Copies. */
export function toDescriptionJson({ replica, models }: StepDescription): Json {
  return { replica, models: models.map(toModelJson) }
}

function toModelJson(model: ServedModel): Json {
  return {
    name: model.name,
    ...(model.config !== undefined && { config: toJsonConfig(model.config) }),
    labels: Object.entries(model.labels),
    versions: model.versions.map(({ version, revision, state, reason, judgesReadiness }) => ({
      version,
      revision,
      state,
      reason,
      ...(judgesReadiness !== undefined && { judgesReadiness }),
    })),
    reason: model.reason,
  }
}

/**
 * @param json - what JSON.parse made of a step's answer.
 * @throws ServeError MALFORMED_MESSAGE that names the field, one of a configuration too.
 */
export function parseDescriptionJson(json: unknown): StepDescription {
  const { replica, models } = parseWire('step description', DescriptionJson, json)
  return { replica, models: models.map(toServedModel) }
}

function toServedModel(model: z.infer<typeof ModelJson>): ServedModel {
  const { config, labels, ...rest } = model
  return {
    ...rest,
    labels: Object.fromEntries(labels),
    ...(config !== undefined && { config }),
  }
}

import { ServeError } from '@tutti/errors'
import { isEnsembleConfig, type Json, type ModelConfig, toJsonConfig } from '@tutti/model-config'
import { z } from 'zod'
import { checkEnsembleRules, type EnsembleRules } from '../ensemble-rules.ts'
import { ConfigJson, parseWire } from '../wire-field.ts'

/*
 * The data of a ControllerRevision that the operator writes for each accepted Model and Ensemble, and that routers read. Members
 * that only newer operators know are dropped, so that versions of one installation can be mixed while it is upgraded.
 */

/** The resource that was accepted, as it was then. */
const ResourceJson = z.object({ name: z.string(), uid: z.string(), generation: z.int().min(0) })

/** An accepted Model: the revisions that routers may use of it. */
export const AcceptedModel = z.object({
  kind: z.literal('Model'),
  /** As clients call it. */
  modelName: z.string().min(1),
  resource: ResourceJson,
  /** Completed and normalised, as a replica that serves the revisions describes it. In JSON, protobuf JSON. */
  config: ConfigJson,
  versions: z.array(z.object({ version: z.int().min(0), revision: z.string() })),
})
export type AcceptedModel = z.infer<typeof AcceptedModel>

const Rules = z.object({
  stepNames: z.array(z.string()),
  dependsOn: z.array(z.array(z.int())),
  timeoutMs: z.int().optional(),
  maxInFlightRequests: z.int().optional(),
}) satisfies z.ZodType<EnsembleRules>

/** A record of zod would drop `__proto__`, which is a served name like any other. */
const ConfigsByName = z.unknown().transform((json, context): Record<string, ModelConfig> => {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    context.addIssue({ code: 'custom', message: 'want an object' })
    return z.NEVER
  }
  const configs = Object.entries(json).map(([name, config]): [string, ModelConfig] => {
    const { success, data, error } = ConfigJson.safeParse(config)
    if (success) return [name, data]
    for (const { message, path } of error.issues) {
      context.addIssue({ code: 'custom', message, path: [name, ...path] })
    }
    return [name, z.NEVER]
  })
  return Object.fromEntries(configs)
})

/** An accepted Ensemble. The rules fit the config. */
export const AcceptedEnsemble = z
  .object({
    kind: z.literal('Ensemble'),
    /** As clients call it. */
    modelName: z.string().min(1),
    resource: ResourceJson,
    /** With `ensemble_scheduling`. In JSON, protobuf JSON. */
    config: ConfigJson,
    rules: Rules,
    /** By served name, the configs of the models it was judged with. In JSON, protobuf JSON. */
    models: ConfigsByName,
  })
  .check(({ value, issues }) => {
    const { config, rules } = value
    try {
      if (isEnsembleConfig(config)) checkEnsembleRules(config, rules)
      else issues.push(issue(config, ['config'], 'it has no ensemble_scheduling'))
    } catch (error) {
      issues.push(issue(rules, ['rules'], ServeError.from(error).message))
    }
  })
export type AcceptedEnsemble = z.infer<typeof AcceptedEnsemble>

/** The data of a ControllerRevision. Copies. */
export function toAcceptedJson(accepted: AcceptedModel | AcceptedEnsemble): Json {
  const { kind, modelName, resource } = accepted
  const head = { modelName, resource: { ...resource }, config: toJsonConfig(accepted.config) }
  if (accepted.kind === 'Model') {
    return { kind, ...head, versions: accepted.versions.map((version) => ({ ...version })) }
  }
  const models = Object.entries(accepted.models).map(([name, config]): [string, Json] => [
    name,
    toJsonConfig(config),
  ])
  return { kind, ...head, rules: toRulesJson(accepted.rules), models: Object.fromEntries(models) }
}

/**
 * @param json - the data of a ControllerRevision.
 * @throws ServeError MALFORMED_MESSAGE that names the field, one of a configuration too.
 */
export function parseAcceptedJson(json: unknown): AcceptedModel | AcceptedEnsemble {
  const { kind } = parseWire('accepted revision', Kind, json)
  return kind === 'Model'
    ? parseWire('accepted Model', AcceptedModel, json)
    : parseWire('accepted Ensemble', AcceptedEnsemble, json)
}

const Kind = z.object({ kind: z.enum(['Model', 'Ensemble']) })

function toRulesJson({
  stepNames,
  dependsOn,
  timeoutMs,
  maxInFlightRequests,
}: EnsembleRules): Json {
  return {
    stepNames: [...stepNames],
    dependsOn: dependsOn.map((list) => [...list]),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(maxInFlightRequests !== undefined && { maxInFlightRequests }),
  }
}

function issue(input: unknown, path: string[], message: string): z.core.$ZodRawIssue {
  return { code: 'custom', input, path, message }
}

import { ConfigJson, parseWire, readConfigJson } from '@tutti/api'
import { isEnsembleConfig, type Json, type ModelConfig, toJsonConfig } from '@tutti/model-config'
import { z } from 'zod'
import { Graph } from './graph.ts'

/*
 * The data of a ControllerRevision that the operator writes for each accepted Model and Ensemble, and that routers read. Members
 * that only newer operators know are dropped, so that versions of one installation can be mixed while it is upgraded.
 */

/** The resource that was accepted, as it was then. */
const ResourceJson = z.object({ name: z.string(), uid: z.string(), generation: z.int().min(0) })

/** An accepted Model, with the revisions of it that routers may use. */
export const AcceptedModel = z.object({
  kind: z.literal('Model'),
  /** Name by which clients call the model. */
  modelName: z.string().min(1),
  resource: ResourceJson,
  /**
   * Configuration of the latest version, completed and normalised, as a replica of these revisions describes it. It travels as
   * protobuf JSON.
   */
  config: ConfigJson,
  versions: z.array(
    z.object({
      version: z.int().min(0),
      revision: z.string(),
      /** Configuration of this version; absent if it is the same as the model's. */
      config: ConfigJson.exactOptional(),
    }),
  ),
  /** The author's promise that the model does no harm if it executes a request twice. */
  mayRunTwice: z.literal(true).exactOptional(),
})
export type AcceptedModel = z.infer<typeof AcceptedModel>

/** A record of zod would drop `__proto__`, which is a served name like any other. */
const ConfigsByName = z.codec(
  z.custom<Readonly<Record<string, Json>>>(
    (json) => typeof json === 'object' && json !== null && !Array.isArray(json),
    'want an object',
  ),
  z.custom<Readonly<Record<string, ModelConfig>>>(),
  {
    decode: (json, { issues }) =>
      mapValues(json, (config, name) => readConfigJson(config, issues, [name])),
    encode: (configs) => mapValues(configs, toJsonConfig),
  },
)

function mapValues<T, U>(record: Readonly<Record<string, T>>, map: (value: T, key: string) => U) {
  const entries = Object.entries(record).map(([key, value]): [string, U] => [key, map(value, key)])
  return Object.fromEntries(entries)
}

/** An accepted Ensemble. The parser checks that the outputs of graph and config are the same. */
export const AcceptedEnsemble = z
  .object({
    kind: z.literal('Ensemble'),
    /** Name by which clients call the ensemble. */
    modelName: z.string().min(1),
    resource: ResourceJson,
    /** Configuration of the ensemble that clients get. It travels as protobuf JSON. */
    config: ConfigJson,
    graph: Graph,
    /** Configurations of the models that the ensemble was checked against, by served name. They travel as protobuf JSON. */
    models: ConfigsByName,
    /** Outputs that responses of those models may lack because steps were skipped; absent for none. */
    optionalOutputs: z.record(z.string(), z.array(z.string()).readonly()).exactOptional(),
  })
  .check(({ value: { config, graph }, issues }) => {
    if (!isEnsembleConfig(config)) {
      issues.push({
        code: 'custom',
        input: config,
        path: ['config'],
        message: 'it is of no ensemble',
      })
    }
    const [wanted, got] = [config.output, graph.outputs].map((list) =>
      list.map(({ name }) => name).join(', '),
    )
    if (wanted === got) return
    const message = `got '${got}', want the outputs of the config, '${wanted}'`
    issues.push({ code: 'custom', input: graph, path: ['graph', 'outputs'], message })
  })
export type AcceptedEnsemble = z.infer<typeof AcceptedEnsemble>

const Accepted = z.discriminatedUnion('kind', [AcceptedModel, AcceptedEnsemble])

/** Converts an accepted resource to the data of a ControllerRevision. Copies. */
export function toAcceptedJson(accepted: AcceptedModel | AcceptedEnsemble): Json {
  return z.encode(Accepted, accepted)
}

/**
 * Parses the data of a ControllerRevision.
 *
 * @param json - the data, as JSON.parse gave it.
 * @throws ServeError MALFORMED_MESSAGE that names the field, also a field within a configuration.
 */
export function parseAcceptedJson(json: unknown): AcceptedModel | AcceptedEnsemble {
  const { kind } = parseWire('accepted revision', Kind, json)
  return parseWire(`accepted ${kind}`, Accepted, json)
}

const Kind = z.object({ kind: z.enum(['Model', 'Ensemble']) })

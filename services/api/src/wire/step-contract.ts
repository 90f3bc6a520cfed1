import type { Json, ModelStatistics } from '@tutti/model-config'
import { z } from 'zod'
import { ConfigJson, Natural, parseWire } from './wire-field.ts'

/*
 * The answers of a step process, as JSON between processes. Members that only newer releases know are dropped, so that versions of
 * one installation can be mixed while it is upgraded.
 */

/** Output name -> label lines. Pairs and no object in JSON: `__proto__` is a name like any other. */
const Labels = z.codec(
  z.array(z.tuple([z.string(), z.array(z.string()).readonly()])),
  z.custom<Readonly<Record<string, readonly string[]>>>(),
  { decode: Object.fromEntries, encode: Object.entries },
)

/** One model version that a step process knows. */
const ServedVersion = z
  .object({
    version: Natural,
    revision: z.string(),
    state: z.enum(['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE']),
    /** `<Code>: <text>` when the load failed (triton-semantics 3.5), '' otherwise. */
    reason: z.string(),
    /**
     * Configuration and labels of this version; absent if they are the model's. The configuration is completed and normalised.
     * It travels as protobuf JSON.
     */
    own: z.object({ config: ConfigJson, labels: Labels }).readonly().exactOptional(),
    /** True if the version reports its own readiness: the state alone does not tell whether it is ready. */
    judgesReadiness: z.boolean().exactOptional(),
  })
  .readonly()
export type ServedVersion = z.infer<typeof ServedVersion>
export type VersionState = ServedVersion['state']

/** One model that a step process knows, whether it loaded or not. */
const ServedModel = z
  .object({
    name: z.string(),
    /**
     * Configuration of the latest version, completed and normalised; absent if the configuration itself was refused. It travels
     * as protobuf JSON.
     */
    config: ConfigJson.exactOptional(),
    labels: Labels,
    /** Ascending by version. */
    versions: z.array(ServedVersion).readonly(),
    /** Reason why there is no usable configuration; '' if there is one. */
    reason: z.string(),
  })
  .readonly()
export type ServedModel = z.infer<typeof ServedModel>

/** The answer of a step process when a router asks what it serves. */
const StepDescription = z
  .object({
    replica: z.string(),
    /** Name of the machine, which is the pod on Kubernetes. Only people read it. */
    host: z.string().exactOptional(),
    models: z.array(ServedModel).readonly(),
  })
  .readonly()
export type StepDescription = z.infer<typeof StepDescription>

/** Converts a step's description to JSON. Copies. */
export function toDescriptionJson(description: StepDescription): Json {
  const json: z.ZodType<StepDescription, Json> = StepDescription
  return z.encode(json, description)
}

/**
 * Parses the description in a step's answer.
 *
 * @param json - what JSON.parse made of the answer.
 * @throws ServeError MALFORMED_MESSAGE that names the field, also a field within a configuration.
 */
export function parseDescriptionJson(json: unknown): StepDescription {
  return parseWire('step description', StepDescription, json)
}

/** A model version that requests are pinned to. After a newer revision replaces it, it is still served for these requests. */
export interface PinnedVersion {
  readonly model: string
  readonly version: number
  readonly revision: string
}

/** The questions that a router asks a step process besides inference. */
export interface StepControl {
  describe(): Promise<StepDescription>
  /** Asks for the statistics of model versions. An empty `model` means all models, an empty `version` all versions. */
  statistics(model: string, version: string): Promise<readonly ModelStatistics[]>
  /** Asks a version that reports its own readiness whether it is ready. Absent if no version does so. */
  isReady?(model: string, version: number): Promise<boolean>
}

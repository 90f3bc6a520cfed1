import type { Json } from '@tutti/model-config'
import { z } from 'zod'
import type { StepDescription } from './step-contract.ts'
import { ConfigJson, parseWire } from './wire-field.ts'

/*
 * What a step process answers, as JSON between processes. Members that only newer releases know are dropped, so that versions of
 * one installation can be mixed while it is upgraded.
 */

/** Pairs and no object: `__proto__` is a name like any other. */
const LabelsJson = z.codec(
  z.array(z.tuple([z.string(), z.array(z.string()).readonly()])),
  z.custom<Readonly<Record<string, readonly string[]>>>(),
  { decode: Object.fromEntries, encode: Object.entries },
)

const VersionJson = z.object({
  version: z.int().min(0),
  revision: z.string(),
  state: z.enum(['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE']),
  reason: z.string(),
  judgesReadiness: z.boolean().exactOptional(),
})

const ModelJson = z.object({
  name: z.string(),
  config: ConfigJson.exactOptional(),
  labels: LabelsJson,
  versions: z.array(VersionJson),
  reason: z.string(),
})

/** From JSON to a description and back. */
const DescriptionJson: z.ZodType<StepDescription, Json> = z.object({
  replica: z.string(),
  models: z.array(ModelJson),
})

/** A step's description as JSON. Copies. */
export function toDescriptionJson(description: StepDescription): Json {
  return z.encode(DescriptionJson, description)
}

/**
 * @param json - what JSON.parse made of a step's answer.
 * @throws ServeError MALFORMED_MESSAGE that names the field, one of a configuration too.
 */
export function parseDescriptionJson(json: unknown): StepDescription {
  return parseWire('step description', DescriptionJson, json)
}

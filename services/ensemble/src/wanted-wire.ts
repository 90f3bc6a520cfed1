import { type Json, type ModelConfig, toJsonConfig } from '@tutti/model-config'
import { z } from 'zod'
import { ConfigJson, parseWire } from './wire-field.ts'

/*
 * What routers tell one another of loads and unloads, as JSON between processes.
 */

/** An ensemble as the router that loaded it read it. */
export interface WantedEnsemble {
  /** Normalised. */
  readonly config: ModelConfig
  /** Output name -> label lines. */
  readonly labels: Readonly<Record<string, readonly string[]>>
  readonly versions: readonly { readonly version: number; readonly revision: string }[]
  /** Of what it was read from. */
  readonly digest: string
}

/** The last that was asked for under a name, by any router. */
export interface WantedModel {
  readonly name: string
  /** Grows with every request for the name: milliseconds since the epoch, or one more than before. */
  readonly at: number
  /** The router that was asked; it decides between equal times. */
  readonly by: string
  readonly isLoaded: boolean
  /** Asked for by name, not only because an ensemble is composed of it. */
  readonly isExplicit: boolean
  /** Set for an ensemble that is loaded. */
  readonly ensemble?: WantedEnsemble
  /** The `config` that came with the load of a model; its files travel beside. */
  readonly config?: string
}

const VersionJson = z.object({ version: z.int().min(0), revision: z.string() })

const EnsembleJson = z.object({
  config: ConfigJson,
  labels: z.array(z.tuple([z.string(), z.array(z.string())])),
  versions: z.array(VersionJson),
  digest: z.string(),
})

const WantedJson = z.object({
  name: z.string(),
  at: z.int().min(0),
  by: z.string(),
  isLoaded: z.boolean(),
  isExplicit: z.boolean(),
  ensemble: EnsembleJson.optional(),
  config: z.string().optional(),
})

/** Copies. */
export function toWantedJson({ ensemble, config, ...rest }: WantedModel): Json {
  return {
    ...rest,
    ...(config !== undefined && { config }),
    ...(ensemble !== undefined && {
      ensemble: {
        config: toJsonConfig(ensemble.config),
        labels: Object.entries(ensemble.labels).map(([name, lines]) => [name, [...lines]]),
        versions: ensemble.versions.map(({ version, revision }) => ({ version, revision })),
        digest: ensemble.digest,
      },
    }),
  }
}

/** @throws ServeError MALFORMED_MESSAGE that names the field, one of a configuration too. */
export function parseWantedJson(json: unknown): WantedModel {
  const { ensemble, config, ...rest } = parseWire('wanted model', WantedJson, json)
  return {
    ...rest,
    ...(config !== undefined && { config }),
    ...(ensemble !== undefined && { ensemble: toEnsemble(ensemble) }),
  }
}

/** True if `next` was asked for after `known`. */
export function isNewer(next: WantedModel, known: WantedModel | undefined): boolean {
  if (known === undefined || next.at > known.at) return true
  return next.at === known.at && next.by > known.by
}

function toEnsemble({ labels, ...rest }: z.infer<typeof EnsembleJson>): WantedEnsemble {
  return { ...rest, labels: Object.fromEntries(labels) }
}

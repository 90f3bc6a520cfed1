import { parsedEnsemble } from '@tutti/api/testing'
import { passiveTracing, silentLogger, systemClock } from '@tutti/chassis'
import { type Graph, type GraphStep, readConfigGraph, readValidManifest } from '@tutti/graph'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { ServerMetrics } from '@tutti/telemetry'
import { StepDirectory } from '@tutti/transport'
import type { EnsembleDefinition, EnsembleSource } from '../catalog/ensemble-source.ts'
import { Router, type RouterOptions } from '../router.ts'
import { ReplicaExecutors } from './replica-executors.ts'

/** A router over the replicas of a test. `ensembles` are the texts of config.pbtxt by name, without the name. */
export function testRouter(
  o: Omit<Partial<RouterOptions>, 'ensembles' | 'replicas'> & {
    readonly replicas?: ReplicaExecutors
    readonly ensembles?: Readonly<Record<string, string>> | undefined
    /** The parts of ensembles that manifests have and config.pbtxt has not, by name. */
    readonly beyond?: Readonly<Record<string, BeyondConfig>> | undefined
    /** Specs of Ensembles by name, with the types of all outputs. */
    readonly manifests?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined
  },
) {
  const { ensembles = {}, beyond = {}, manifests = {}, ...rest } = o
  const parts = {
    replicas: new ReplicaExecutors(),
    directory: new StepDirectory(),
    metrics: new ServerMetrics(),
  }
  const router = new Router({
    ensembles: [
      ...Object.entries(ensembles).map(([name, text]) =>
        toSource(name, toDefinition(name, text, beyond[name])),
      ),
      ...Object.entries(manifests).map(([name, spec]) =>
        toSource(name, readValidManifest(parsedEnsemble(name, spec))),
      ),
    ],
    strictReadiness: true,
    clock: systemClock,
    log: silentLogger,
    tracing: passiveTracing,
    ...parts,
    ...rest,
  })
  return { ...parts, ...rest, router }
}

function toSource(name: string, { config, graph }: EnsembleDefinition): EnsembleSource {
  const versions = [{ version: 1, revision: 'ensemble-revision' }]
  return { name, definition: { config, graph }, labels: {}, versions, reason: '' }
}

/** The parts of a graph that config.pbtxt has no words for. */
export interface BeyondConfig extends Pick<Partial<Graph>, 'timeoutMs' | 'maxInFlightRequests'> {
  /** One for each step. */
  readonly steps?: readonly Partial<
    Pick<GraphStep, 'name' | 'after' | 'call' | 'forEach' | 'loop'>
  >[]
}

/** @param text - config.pbtxt without the name. */
export function toDefinition(
  name: string,
  text: string,
  { steps = [], ...beyond }: BeyondConfig = {},
): EnsembleDefinition {
  const config = toConfig(name, text)
  const graph = readConfigGraph(config)
  return {
    config,
    graph: { ...graph, ...beyond, steps: graph.steps.map((one, i) => ({ ...one, ...steps[i] })) },
  }
}

/** @param text - config.pbtxt without the name. */
export function toConfig(name: string, text: string): ModelConfig {
  return normaliseModelConfig({ ...parseModelConfig(text, `${name}/config.pbtxt`), name })
}

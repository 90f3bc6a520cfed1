import { passiveTracing, silentLogger, systemClock } from '@tutti/chassis'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { ServerMetrics } from '@tutti/telemetry'
import { StepDirectory } from '@tutti/transport'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'
import { Router, type RouterOptions } from '../router.ts'
import { ReplicaExecutors } from './replica-executors.ts'

/** A router over the replicas of a test. `ensembles` are the texts of config.pbtxt by name, without the name. */
export function testRouter(
  o: Omit<Partial<RouterOptions>, 'ensembles' | 'replicas'> & {
    readonly replicas?: ReplicaExecutors
    readonly ensembles?: Readonly<Record<string, string>> | undefined
    /** Rules that manifests would add to the ensembles, by name. */
    readonly rules?: Readonly<Record<string, NonNullable<EnsembleSource['rules']>>> | undefined
  },
) {
  const { ensembles = {}, rules = {}, ...rest } = o
  const parts = {
    replicas: new ReplicaExecutors(),
    directory: new StepDirectory(),
    metrics: new ServerMetrics(),
  }
  const router = new Router({
    ensembles: Object.entries(ensembles).map(([name, text]) => toSource(name, text, rules[name])),
    strictReadiness: true,
    clock: systemClock,
    log: silentLogger,
    tracing: passiveTracing,
    ...parts,
    ...rest,
  })
  return { ...parts, ...rest, router }
}

function toSource(name: string, text: string, rules: EnsembleSource['rules']): EnsembleSource {
  const versions = [{ version: 1, revision: 'ensemble-revision' }]
  const source = { name, config: toConfig(name, text), labels: {}, versions, reason: '' }
  return rules === undefined ? source : { ...source, rules }
}

/** @param text - config.pbtxt without the name. */
export function toConfig(name: string, text: string): ModelConfig {
  return normaliseModelConfig({ ...parseModelConfig(text, `${name}/config.pbtxt`), name })
}

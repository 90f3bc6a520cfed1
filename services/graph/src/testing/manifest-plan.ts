import { parsedEnsemble } from '@tutti/api/testing'
import { assert } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { modelConfig } from '@tutti/model-config/testing'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { checkEnsemble } from '../validate/check-manifest.ts'

/** A model of a test: names of inputs, of which one that ends in `?` is optional, and of outputs. All are FP32[4]. */
export interface ModelPorts {
  readonly input: readonly string[]
  readonly output: readonly string[]
  readonly decoupled?: boolean
  readonly optionalOutputs?: readonly string[]
}

/** Plans an Ensemble E, given by its spec, over models by their names. Throws if it is not accepted. */
export function manifestPlan(
  spec: Readonly<Record<string, unknown>>,
  models: Readonly<Record<string, ModelPorts>>,
): EnsemblePlan {
  const known = new Map(
    Object.entries(models).map(([name, ports]) => [name, toConfig(name, ports)]),
  )
  const find = (name: string) => {
    const config = known.get(name)
    const optionalOutputs = models[name]?.optionalOutputs ?? []
    return config && { config, readyVersions: [1], optionalOutputs }
  }
  const check = checkEnsemble(parsedEnsemble('e', spec), {
    lookup: (name) => find(name) ?? 'unknown',
  })
  assert(check.accepted, check.accepted ? '' : check.message)
  return planEnsemble({ config: check.config, graph: check.graph, lookup: find })
}

function toConfig(name: string, { input, output, decoupled = false }: ModelPorts): ModelConfig {
  return modelConfig({
    name,
    input: input.map((port) => ({ name: port.replace('?', ''), optional: port.endsWith('?') })),
    output: output.map((port) => ({ name: port })),
    model_transaction_policy: { decoupled },
  })
}

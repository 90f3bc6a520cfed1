import type { ModelSpec } from '@tutti/api'
import type { ModelFacts } from './model-facts.ts'
import { childName } from './names.ts'
import { ensembleLabels, ensembleSelector, stepLabels, stepSelector } from './step-labels.ts'
import type { StepPodSettings } from './step-settings.ts'

type Texts = Readonly<Record<string, string>>

/** The fields of a host that count for its pods, and so for all Models in them. */
export type HostSpec = Pick<
  ModelSpec,
  'accelerator' | 'resources' | 'scaling' | 'rollout' | 'disruptionBudget' | 'podTemplate'
>

/** Models that run in the same pods, and the host that says how many pods there are and what they get. */
export interface PodGroup {
  readonly namespace: string
  /** Name of the Model that is the host; undefined if the host is an Ensemble. */
  readonly host?: string
  /** Name of the objects around the pods. */
  readonly childName: string
  /** Labels of these objects. */
  readonly labels: Texts
  /** Labels that select the pods. They never change. */
  readonly selector: Texts
  /** Labels that the host's own labels give to the pods. */
  readonly podLabels: Texts
  readonly settings: StepPodSettings
  /** Fields of the host. Its `resources` replace the sum of those of the Models, name by name. */
  readonly spec: HostSpec
  /** The Models in the pods, the host first if it is one; at least one. */
  readonly models: readonly ModelFacts[]
  /** True if the pods run built-in steps too. */
  readonly hasBuiltins: boolean
}

/** Makes the group of a Model that has pods of its own, and of its guests. */
export function groupOfModel(host: ModelFacts, guests: readonly ModelFacts[] = []): PodGroup {
  const { name, namespace, settings, labels = {}, spec } = host
  const { accelerator, scaling, rollout, disruptionBudget, podTemplate } = spec
  return {
    namespace,
    host: name,
    childName: host.childName,
    labels: stepLabels(name),
    selector: stepSelector(name),
    podLabels: labels,
    settings,
    spec: {
      ...(accelerator !== undefined && { accelerator }),
      ...(scaling !== undefined && { scaling }),
      ...(rollout !== undefined && { rollout }),
      ...(disruptionBudget !== undefined && { disruptionBudget }),
      ...(podTemplate !== undefined && { podTemplate }),
    },
    models: [host, ...guests],
    hasBuiltins: false,
  }
}

/** The facts of an Ensemble whose Models run in its pods. */
export interface EnsembleHost {
  /** Name of the Ensemble, its metadata.name. */
  readonly name: string
  readonly namespace: string
  readonly spec: HostSpec
  readonly settings: StepPodSettings
  /** Labels of the Ensemble for its pods, see podLabelsOf. */
  readonly labels: Texts
  /** True if some of its steps are built-ins that read no files of a Model. */
  readonly hasBuiltins: boolean
}

/** Makes the group of the Models that run in the pods of an Ensemble. @param models - at least one. */
export function groupOfEnsemble(host: EnsembleHost, models: readonly ModelFacts[]): PodGroup {
  const { name, namespace, settings, spec, labels, hasBuiltins } = host
  return {
    namespace,
    childName: childName(name, 'steps'),
    labels: ensembleLabels(name),
    selector: ensembleSelector(name),
    podLabels: labels,
    settings,
    spec,
    models,
    hasBuiltins,
  }
}

/** Returns the name of a container or volume of one Model in the pods: plain for the host, else with the name of the Model. */
export function partName(group: PodGroup, part: string, { name }: ModelFacts): string {
  return name === group.host ? part : `${part}-${name}`
}

import type { KubeObject } from '@tutti/kube'
import { MANAGED_BY, toSelector } from '../runtime/children.ts'

/** What all processes of ours are called in labels. */
export const COMPONENT = 'app.kubernetes.io/component'
/** On what belongs to a Model: its metadata.name. */
export const MODEL_LABEL = 'tutti.dev/model'

type Labels = Readonly<Record<string, string>>

/** Selects the pods of a Model. Never changes: a Deployment's selector cannot. @param name - metadata.name of the Model. */
export function stepSelector(name: string): Labels {
  return { [COMPONENT]: 'step', [MODEL_LABEL]: name }
}

/** The same, as the status and `kubectl -l` have it. */
export function stepSelectorText(name: string): string {
  return toSelector(stepSelector(name))
}

/** Labels of the children of a Model, its pods included. */
export function stepLabels(name: string): Labels {
  return {
    ...MANAGED_BY,
    'app.kubernetes.io/name': 'tutti-step',
    'app.kubernetes.io/instance': name,
    ...stepSelector(name),
  }
}

/** True for what has the labels of a router, its pods included. */
export function isOfRouter({ metadata }: KubeObject): boolean {
  return metadata.labels?.[COMPONENT] === 'router'
}

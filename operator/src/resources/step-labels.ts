import { COMPONENT, MODEL_LABEL } from '@tutti/api'
import { MANAGED_BY, toSelector } from '../runtime/children.ts'

type Labels = Readonly<Record<string, string>>

/**
 * Returns the labels that select the pods of a Model. They must never change, because a Deployment's selector cannot.
 *
 * @param name - metadata.name of the Model.
 */
export function stepSelector(name: string): Labels {
  return { [COMPONENT]: 'step', [MODEL_LABEL]: name }
}

/** Writes the labels of `stepSelector` as a selector, for the status and `kubectl -l`. */
export function stepSelectorText(name: string): string {
  return toSelector(stepSelector(name))
}

/** Returns the labels of a Model's children, its pods included. */
export function stepLabels(name: string): Labels {
  return {
    ...MANAGED_BY,
    'app.kubernetes.io/name': 'tutti-step',
    'app.kubernetes.io/instance': name,
    ...stepSelector(name),
  }
}

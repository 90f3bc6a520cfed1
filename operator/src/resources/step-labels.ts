import { COMPONENT, MODEL_LABEL } from '@tutti/api'
import { MANAGED_BY, toSelector } from '../runtime/children.ts'

type Labels = Readonly<Record<string, string>>

/** Selects the pods of a Model. It must never change, because a Deployment's selector cannot. @param name - metadata.name of the Model. */
export function stepSelector(name: string): Labels {
  return { [COMPONENT]: 'step', [MODEL_LABEL]: name }
}

/** The same as text, for the status and `kubectl -l`. */
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

import { BUILTINS_LABEL, COMPONENT, ENSEMBLE_LABEL, MODEL_LABEL, servesLabel } from '@tutti/api'
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

/** Returns the labels that select the pods of an Ensemble. They never change. @param name - metadata.name of the Ensemble. */
export function ensembleSelector(name: string): Labels {
  return { [COMPONENT]: 'step', [ENSEMBLE_LABEL]: name }
}

/** Returns the labels of the objects around the pods of an Ensemble. */
export function ensembleLabels(name: string): Labels {
  return {
    ...MANAGED_BY,
    'app.kubernetes.io/name': 'tutti-step',
    'app.kubernetes.io/instance': name,
    ...ensembleSelector(name),
  }
}

/** Returns the labels of pods that serve these Models. */
export function servesLabels(models: readonly { readonly name: string }[]): Labels {
  return Object.fromEntries(models.map(({ name }) => [servesLabel(name), 'true']))
}

/** Prefixes of labels that belong to the tools that apply the Model, or to the operator. */
const NOT_OF_PODS =
  /^(app\.kubernetes\.io|helm\.sh|argocd\.argoproj\.io|([a-z0-9.-]+\.)?(toolkit\.fluxcd\.io|tutti\.dev))\//

/** Returns those labels of a Model that its pods have too: for costs, a mesh, or the queue of Kueue. */
export function podLabelsOf(labels: Labels = {}): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !NOT_OF_PODS.test(key)))
}

/** Name of each object around the built-ins of a namespace. */
export const BUILTINS_NAME = 'tutti-builtins'

/** The labels that select the pods with the built-ins of a namespace; no Model's labels do. */
export const BUILTINS_SELECTOR: Labels = { [COMPONENT]: 'step', [BUILTINS_LABEL]: 'true' }

/** The labels by which a Router adopts objects around built-ins of an earlier Router that was deleted. */
export const BUILTINS_IDENTITY: Labels = { ...MANAGED_BY, ...BUILTINS_SELECTOR }

/** Labels of each object around the built-ins of a namespace. */
export const BUILTINS_LABELS: Labels = {
  ...BUILTINS_IDENTITY,
  'app.kubernetes.io/name': 'tutti-step',
  'app.kubernetes.io/instance': BUILTINS_NAME,
}

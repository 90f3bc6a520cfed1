import { type EnsembleSpec, notServedText, type StepStatus } from '@tutti/api'
import { modelOfStep } from '@tutti/graph'
import type { ToldBuiltins } from '../router/builtins-told.ts'
import type { NamespaceView, StepTarget } from './namespace-view.ts'

/**
 * Builds the status of each step: the served name that it runs, and whether that, and its fallback, are ready.
 *
 * @param builtins - state of the namespace's pods with built-ins.
 */
export function toStepStatuses(
  spec: EnsembleSpec,
  view: NamespaceView,
  builtins: ToldBuiltins,
): readonly StepStatus[] {
  return spec.steps.map((step) => {
    const { builtin, onError } = step
    const isBuiltin = builtin !== undefined && builtin.model === undefined
    const model = isBuiltin ? `builtin:${builtin.name}` : modelOfStep(step)
    const fallback = onError?.fallback && modelOfStep(onError.fallback)
    const own = isBuiltin ? builtins : checkTarget(model, view)
    const other = fallback === undefined ? own : checkTarget(fallback, view)
    return { name: step.name, model, ...(own.ready ? withFallback(own, other) : own) }
  })
}

/** A step is ready with its fallback: without it, the next failure of its model would be one of the Ensemble. */
function withFallback(own: Target, { ready, reason, message }: Target): Target {
  if (ready) return own
  return { ...own, ready, ...(reason && { reason }), message: `fallback: ${message}` }
}

type Target = Omit<StepStatus, 'name' | 'model'>

function checkTarget(model: string, view: NamespaceView): Target {
  const target = view.holderOf(model)
  if (target === undefined) {
    const message = notServedText(model, view.resourceNamed(model))
    return { ready: false, reason: 'NotFound', message }
  }
  const { ready, revision, replicas } = readTarget(target)
  return {
    ready,
    ...(ready ? {} : reasonOf(target)),
    ...(replicas !== undefined && { replicas }),
    ...(revision !== undefined && { revision }),
  }
}

function readTarget({
  kind,
  status = {},
}: StepTarget): Pick<StepStatus, 'ready' | 'revision' | 'replicas'> {
  if (kind === 'Ensemble') {
    const isReady = readyOf(status)?.status === 'True'
    return { ready: isReady, revision: 'revision' in status ? status.revision : undefined }
  }
  // While pods are replaced the Model is not ready as a whole, and still answers. One that sleeps is ready without pods.
  const replicas = ('readyReplicas' in status ? status.readyReplicas : undefined) ?? 0
  const revision = 'latestReadyRevision' in status ? status.latestReadyRevision : undefined
  return { ready: replicas > 0 || readyOf(status)?.status === 'True', revision, replicas }
}

function reasonOf({ kind, metadata, status = {} }: StepTarget) {
  const { reason = 'Pending', message = 'it is not ready yet' } = readyOf(status) ?? {}
  return { reason, message: `${kind} "${metadata.name}": ${message}` }
}

function readyOf({ conditions }: NonNullable<StepTarget['status']>) {
  return conditions?.find(({ type }) => type === 'Ready')
}

import { type EnsembleSpec, notServedText, type StepStatus } from '@tutti/api'
import type { NamespaceView, StepTarget } from './namespace-view.ts'

/** Builds the status of each step: the served name that it runs, and whether that is ready. */
export function toStepStatuses(spec: EnsembleSpec, view: NamespaceView): readonly StepStatus[] {
  return spec.steps.map(({ name, modelRef, ensembleRef }) => {
    const model = modelRef?.name ?? ensembleRef?.name ?? ''
    return { name, model, ...checkTarget(model, view) }
  })
}

function checkTarget(model: string, view: NamespaceView): Omit<StepStatus, 'name' | 'model'> {
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
  // While pods are replaced the Model is not ready as a whole, and still answers.
  const replicas = ('readyReplicas' in status ? status.readyReplicas : undefined) ?? 0
  const revision = 'latestReadyRevision' in status ? status.latestReadyRevision : undefined
  return { ready: replicas > 0, revision, replicas }
}

function reasonOf({ kind, metadata, status = {} }: StepTarget) {
  const { reason = 'Pending', message = 'it is not ready yet' } = readyOf(status) ?? {}
  return { reason, message: `${kind} "${metadata.name}": ${message}` }
}

function readyOf({ conditions }: NonNullable<StepTarget['status']>) {
  return conditions?.find(({ type }) => type === 'Ready')
}

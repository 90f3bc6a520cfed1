import type { ModelSpec } from '@tutti/api'
import type { PodSpec, PodTemplateSpec } from '@tutti/kube'
import { ACCEPTED_GATE } from '../pods/pod-state.ts'
import { buildArtifactParts } from './model-artifacts.ts'
import { buildMainContainer, buildMainVolumes, podTimesOf } from './model-container.ts'
import type { ModelFacts } from './model-facts.ts'
import { toPlain } from './plain.ts'
import { overlayPodSpec } from './pod-overlay.ts'
import { ourPodSpec } from './serving-pod.ts'
import { stepLabels, stepSelector } from './step-labels.ts'
import { toStepTemplate } from './step-template.ts'

/** On every pod that fetches with credentials: a digest of them, so that new ones make new pods. */
const CREDENTIALS_ANNOTATION = 'tutti.dev/credentials'

/** Builds the pod template of a Model. */
export function buildPodTemplate(facts: ModelFacts): PodTemplateSpec {
  const { metadata } = facts.spec.podTemplate ?? {}
  const { credentialsDigest } = facts
  return toStepTemplate({
    labels: { ...metadata?.labels, ...stepLabels(facts.name) },
    annotations: {
      ...metadata?.annotations,
      ...(credentialsDigest !== undefined && { [CREDENTIALS_ANNOTATION]: credentialsDigest }),
    },
    spec: overlayPodSpec(buildPodSpec(facts), facts.spec.podTemplate?.spec),
  })
}

function buildPodSpec(facts: ModelFacts): PodSpec {
  const { spec, settings, childName: serviceAccountName, modelName, namespace } = facts
  const { initContainers, volumes, mount } = buildArtifactParts(spec, settings)
  const main = buildMainContainer({ spec, settings, modelName, namespace, mount })
  const base = ourPodSpec({
    serviceAccountName,
    hasToken: false,
    graceS: podTimesOf(spec).graceS,
    imagePullSecrets: settings.imagePullSecrets,
    labels: stepSelector(facts.name),
  })
  return {
    ...base,
    securityContext: { ...base.securityContext, fsGroupChangePolicy: 'OnRootMismatch' },
    ...(initContainers.length > 0 && { initContainers }),
    containers: [main],
    volumes: [...volumes, ...buildMainVolumes(spec, settings)],
    readinessGates: [{ conditionType: ACCEPTED_GATE }],
    ...toPlacement(spec),
  }
}

function toPlacement({ accelerator }: ModelSpec): Partial<PodSpec> {
  const { runtimeClassName, nodeSelector, tolerations } = accelerator ?? {}
  return toPlain({ runtimeClassName, nodeSelector, tolerations })
}

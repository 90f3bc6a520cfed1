import type { ModelSpec } from '@tutti/api'
import type { PodSpec, PodTemplateSpec } from '@tutti/kube'
import { ACCEPTED_GATE } from '../pods/pod-state.ts'
import { buildArtifactParts } from './model-artifacts.ts'
import { buildMainContainer, buildMainVolumes, podTimesOf } from './model-container.ts'
import { devicesOf } from './model-devices.ts'
import type { ModelFacts } from './model-facts.ts'
import { toPlain } from './plain.ts'
import { joinMetadata, overlayAll } from './pod-defaults.ts'
import { ourPodSpec } from './serving-pod.ts'
import { stepLabels, stepSelector } from './step-labels.ts'
import { toStepTemplate } from './step-template.ts'

/** On every pod that fetches with credentials: a digest of them, so that new ones make new pods. */
const CREDENTIALS_ANNOTATION = 'tutti.dev/credentials'

/** Builds the pod template of a Model. */
export function buildPodTemplate(facts: ModelFacts): PodTemplateSpec {
  const { credentialsDigest, labels } = facts
  const templates = [facts.settings.podDefaults?.podTemplate, facts.spec.podTemplate]
  return toStepTemplate({
    labels: { ...labels, ...joinMetadata('labels', ...templates), ...stepLabels(facts.name) },
    annotations: {
      ...joinMetadata('annotations', ...templates),
      ...(credentialsDigest !== undefined && { [CREDENTIALS_ANNOTATION]: credentialsDigest }),
    },
    spec: overlayAll(buildPodSpec(facts), ...templates),
  })
}

function buildPodSpec(facts: ModelFacts): PodSpec {
  const { spec, settings, childName: serviceAccountName, modelName, namespace } = facts
  const { initContainers, volumes, mount } = buildArtifactParts(facts)
  const main = buildMainContainer({ spec, settings, modelName, namespace, mount })
  const base = ourPodSpec({
    serviceAccountName,
    hasToken: false,
    graceS: podTimesOf(spec).graceS,
    settings,
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

function toPlacement(spec: ModelSpec): Partial<PodSpec> {
  const { runtimeClassName, nodeSelector, tolerations } = spec.accelerator ?? {}
  const { resourceClaims } = devicesOf(spec) ?? {}
  return toPlain({ runtimeClassName, nodeSelector, tolerations, resourceClaims })
}

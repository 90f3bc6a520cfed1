import type { PodSpec, PodTemplateSpec } from '@tutti/kube'
import { acceptedGate } from '../pods/pod-state.ts'
import { buildArtifactParts, shareClaims } from './model-artifacts.ts'
import { buildMainContainer, buildMainVolumes, podTimesOf } from './model-container.ts'
import { devicesOf } from './model-devices.ts'
import { mountCache } from './node-cache.ts'
import { toPlain } from './plain.ts'
import { joinMetadata, overlayAll } from './pod-defaults.ts'
import type { PodGroup } from './pod-group.ts'
import { ourPodSpec } from './serving-pod.ts'
import { servesLabels } from './step-labels.ts'
import { toStepTemplate } from './step-template.ts'

/** On every pod that fetches with credentials: a digest of them, so that new ones make new pods. */
const CREDENTIALS_ANNOTATION = 'tutti.dev/credentials'

/** Builds the template of the pods of a group. */
export function buildPodTemplate(group: PodGroup): PodTemplateSpec {
  const templates = [group.settings.podDefaults?.podTemplate, group.spec.podTemplate]
  const own = { ...group.labels, ...servesLabels(group.models) }
  const credentials = group.models.flatMap(({ credentialsDigest }) => credentialsDigest ?? [])
  return toStepTemplate({
    labels: { ...group.podLabels, ...joinMetadata('labels', ...templates), ...own },
    annotations: {
      ...joinMetadata('annotations', ...templates),
      ...(credentials.length > 0 && { [CREDENTIALS_ANNOTATION]: credentials.join(' ') }),
    },
    spec: mountCache(overlayAll(buildPodSpec(group), ...templates), group),
  })
}

function buildPodSpec(group: PodGroup): PodSpec {
  const { models, settings, childName: serviceAccountName, selector } = group
  const artifacts = shareClaims(models.map((one) => buildArtifactParts(group, one)))
  const initContainers = artifacts.flatMap((one) => one.initContainers)
  const base = ourPodSpec({
    serviceAccountName,
    hasToken: false,
    graceS: podTimesOf(group).graceS,
    settings,
    labels: selector,
  })
  return {
    ...base,
    securityContext: { ...base.securityContext, fsGroupChangePolicy: 'OnRootMismatch' },
    ...(initContainers.length > 0 && { initContainers }),
    containers: [
      buildMainContainer(
        group,
        artifacts.map(({ mount }) => mount),
      ),
    ],
    volumes: [...artifacts.flatMap(({ volumes }) => volumes), ...buildMainVolumes(group)],
    // One for each Model: what a pod serves of it is accepted, and routers know of it.
    readinessGates: models.map(({ name }) => ({ conditionType: acceptedGate(name) })),
    ...toPlacement(group),
  }
}

function toPlacement(group: PodGroup): Partial<PodSpec> {
  const { runtimeClassName, nodeSelector, tolerations } = group.spec.accelerator ?? {}
  const { resourceClaims } = devicesOf(group) ?? {}
  return toPlain({ runtimeClassName, nodeSelector, tolerations, resourceClaims })
}

import type { ModelSpec } from '@tutti/api'
import type { Deployment, Desired, PodSpec, PodTemplateSpec } from '@tutti/kube'
import { ACCEPTED_GATE } from '../pods/pod-state.ts'
import { digestOf } from '../runtime/canonical.ts'
import { buildArtifactParts } from './model-artifacts.ts'
import { buildMainContainer, buildMainVolumes, podTimesOf } from './model-container.ts'
import type { ModelFacts } from './model-facts.ts'
import { toPlain } from './plain.ts'
import { overlayPodSpec } from './pod-overlay.ts'
import { ourPodSpec } from './serving-pod.ts'
import { stepLabels, stepSelector } from './step-labels.ts'

/** The annotation of a pod with the digest of its pod template. It tells which pods are of the newest template. */
export const TEMPLATE_ANNOTATION = 'tutti.dev/template'
/** On every pod that fetches with credentials: a digest of them, so that new ones make new pods. */
const CREDENTIALS_ANNOTATION = 'tutti.dev/credentials'
/** Beyond the time of a load: for scheduling, the pull of the image and the fetch. */
const START_S = 600
const OLD_REPLICA_SETS = 3

/** Builds the Deployment of a Model. @param o.replicas - replicas to write; undefined if an autoscaler or a user sets them. */
export function buildModelDeployment(
  facts: ModelFacts,
  o: { readonly replicas: number | undefined; readonly podTemplate: PodTemplateSpec },
): Desired<Deployment> {
  const { replicas, podTemplate } = o
  const { spec, name, namespace, childName } = facts
  const { maxSurge = 1, maxUnavailable = 0 } = spec.rollout ?? {}
  return {
    metadata: { name: childName, namespace, labels: stepLabels(name) },
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: stepSelector(name) },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
      progressDeadlineSeconds: podTimesOf(spec).loadS + START_S,
      revisionHistoryLimit: OLD_REPLICA_SETS,
      template: podTemplate,
    },
  }
}

/** Builds the pod template of a Model, with its own digest as annotation. */
export function buildPodTemplate(facts: ModelFacts): PodTemplateSpec {
  const { metadata } = facts.spec.podTemplate ?? {}
  const { credentialsDigest } = facts
  const template: PodTemplateSpec = {
    metadata: {
      labels: { ...metadata?.labels, ...stepLabels(facts.name) },
      annotations: {
        ...metadata?.annotations,
        ...(credentialsDigest !== undefined && { [CREDENTIALS_ANNOTATION]: credentialsDigest }),
      },
    },
    spec: overlayPodSpec(buildPodSpec(facts), facts.spec.podTemplate?.spec),
  }
  const annotations = {
    ...template.metadata?.annotations,
    [TEMPLATE_ANNOTATION]: digestOf(template),
  }
  return { ...template, metadata: { ...template.metadata, annotations } }
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

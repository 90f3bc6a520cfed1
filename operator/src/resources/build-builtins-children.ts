import type { RouterSpec } from '@tutti/api'
import type { PodSpec, PodTemplateSpec } from '@tutti/kube'
import type { DesiredChild } from '../runtime/children.ts'
import { buildStepChildren } from './build-step-children.ts'
import { RESOURCES_OF_BUILTINS } from './model-resources.ts'
import { type Scaling, toScaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import { joinMetadata, joinResources, overlayAll, toRequirements } from './pod-defaults.ts'
import { NATS_MOUNT, natsVolume, ourPodSpec, TMP_MOUNT, TMP_VOLUME } from './serving-pod.ts'
import { buildStepContainer, toPodTimes } from './step-container.ts'
import { BUILTINS_LABELS, BUILTINS_NAME, BUILTINS_SELECTOR } from './step-labels.ts'
import { type StepPodSettings, transportOf } from './step-settings.ts'
import { toStepTemplate } from './step-template.ts'

/** The facts from which the objects around the built-ins of a namespace are built. */
export interface BuiltinsFacts {
  readonly namespace: string
  /** The spec of the namespace's Router, which owns them. */
  readonly spec: RouterSpec
  /** Settings of all step pods; their transport is that of the spec. */
  readonly settings: Omit<StepPodSettings, 'transport'>
}

/** Built-ins load nothing before the process is ready. */
const LOAD = '1m'

/** Returns how the pods with built-ins are scaled. */
export function scalingOfBuiltins({ builtins = {} }: RouterSpec): Scaling {
  return toScaling(builtins)
}

/**
 * Builds the Deployment of steps that run built-ins, and all objects around it. There is no Service: only routers call these steps,
 * and they find them by heartbeats. Pure; equal input gives equal text.
 *
 * @param o.replicas - replicas to write; undefined if another client owns the number.
 */
export function buildBuiltinsChildren(
  facts: BuiltinsFacts,
  { replicas }: { readonly replicas: number | undefined },
): readonly DesiredChild[] {
  const { namespace, spec } = facts
  return buildStepChildren({
    metadata: { name: BUILTINS_NAME, namespace, labels: BUILTINS_LABELS },
    selector: BUILTINS_SELECTOR,
    settings: { ...facts.settings, transport: transportOf(spec) },
    spec: spec.builtins ?? {},
    scaling: scalingOfBuiltins(spec),
    replicas,
    podTemplate: buildTemplate(facts),
    loadS: timesOf(spec).loadS,
    services: [],
  })
}

function timesOf({ timeouts }: RouterSpec) {
  return toPodTimes({ load: LOAD, drain: timeouts?.drain })
}

function buildTemplate({ namespace, spec, settings }: BuiltinsFacts): PodTemplateSpec {
  const { resources, nodeSelector, tolerations, podTemplate } = spec.builtins ?? {}
  const { podDefaults } = settings
  const templates = [podDefaults?.podTemplate, podTemplate]
  const times = timesOf(spec)
  const main = buildStepContainer({
    namespace,
    settings: { ...settings, transport: transportOf(spec) },
    image: settings.image,
    serves: ['--builtins'],
    times,
    resources: toRequirements(
      joinResources(resources, podDefaults?.resources, RESOURCES_OF_BUILTINS),
    ),
    mounts: [NATS_MOUNT, TMP_MOUNT],
  })
  const pod: PodSpec = {
    ...ourPodSpec({
      serviceAccountName: BUILTINS_NAME,
      hasToken: false,
      graceS: times.graceS,
      settings,
      labels: BUILTINS_SELECTOR,
    }),
    containers: [main],
    volumes: [natsVolume(settings.nats), TMP_VOLUME],
    ...toPlain({ nodeSelector, tolerations }),
  }
  return toStepTemplate({
    labels: { ...joinMetadata('labels', ...templates), ...BUILTINS_LABELS },
    annotations: joinMetadata('annotations', ...templates),
    spec: overlayAll(pod, ...templates),
  })
}

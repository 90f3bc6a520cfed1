import { COMPONENT, servesLabel } from '@tutti/api'
import { type Desired, type PodTemplateSpec, SERVICE, type Service } from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { buildStepChildren } from './build-step-children.ts'
import { podTimesOf } from './model-container.ts'
import type { ModelFacts } from './model-facts.ts'
import type { Scaling } from './model-scaling.ts'
import { buildPodTemplate } from './model-template.ts'
import type { PodGroup } from './pod-group.ts'
import { buildService, grpcPort, servicePort } from './serving-children.ts'
import { servesLabels, stepLabels } from './step-labels.ts'
import { PORTS } from './step-settings.ts'

/**
 * Builds the Deployment of a group and all objects around it, in the order in which they are applied. Pure; equal input gives equal
 * text.
 *
 * @param o.replicas - replicas to write; undefined if another client owns the number.
 * @param o.podTemplate - the pod template, if it is already built.
 * @param o.services - Services that are applied before the Deployment.
 */
export function buildGroupChildren(
  group: PodGroup,
  o: {
    readonly scaling: Scaling
    readonly replicas: number | undefined
    /** True to take old pods away before there are new ones. */
    readonly replacesFirst?: boolean
    readonly podTemplate?: PodTemplateSpec
    readonly services: readonly Desired<Service>[]
  },
): readonly DesiredChild[] {
  const { podTemplate = buildPodTemplate(group), ...more } = o
  const { childName: name, namespace, labels, selector, settings, spec } = group
  const metadata = { name, namespace, labels }
  const { loadS } = podTimesOf(group)
  const serves = servesLabels(group.models)
  return buildStepChildren({
    ...more,
    metadata,
    selector,
    settings,
    spec,
    podTemplate,
    serves,
    loadS,
  })
}

/** Builds the objects of a Model that runs in the pods of another. */
export function buildGuestChildren(facts: ModelFacts): readonly DesiredChild[] {
  return [desiredChild(SERVICE, buildHeadless(facts))]
}

/**
 * Builds the headless Service of a Model: a client that calls it directly sees the pods that serve it, wherever they belong. Routers
 * find them by their heartbeats.
 */
export function buildHeadless({ childName, namespace, name }: ModelFacts): Desired<Service> {
  const { metadata, spec } = buildService(
    {
      metadata: { name: childName, namespace, labels: stepLabels(name) },
      selector: { [COMPONENT]: 'step', [servesLabel(name)]: 'true' },
    },
    [
      grpcPort('grpc', PORTS.grpc),
      servicePort('http', PORTS.http),
      servicePort('metrics', PORTS.metrics),
    ],
  )
  return { metadata, spec: { clusterIP: 'None', ...spec } }
}

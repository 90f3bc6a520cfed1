import type { Desired, PodTemplateSpec, Service } from '@tutti/kube'
import type { DesiredChild } from '../runtime/children.ts'
import { buildStepChildren } from './build-step-children.ts'
import { podTimesOf } from './model-container.ts'
import type { ModelFacts } from './model-facts.ts'
import type { Scaling } from './model-scaling.ts'
import { buildPodTemplate } from './model-template.ts'
import { buildService, grpcPort, type ServingMetadata, servicePort } from './serving-children.ts'
import { stepLabels, stepSelector } from './step-labels.ts'
import { PORTS } from './step-settings.ts'

/**
 * Builds all children of a Model in the order in which they are applied. Pure; equal input gives equal text.
 *
 * @param o.replicas - replicas to write; undefined if another client owns the number.
 * @param o.podTemplate - the pod template, if it is already built.
 */
export function buildModelChildren(
  facts: ModelFacts,
  o: {
    readonly scaling: Scaling
    readonly replicas: number | undefined
    /** True to take old pods away before there are new ones. */
    readonly replacesFirst?: boolean
    readonly podTemplate?: PodTemplateSpec
  },
): readonly DesiredChild[] {
  const { scaling, replicas, replacesFirst = false, podTemplate = buildPodTemplate(facts) } = o
  const { spec, settings } = facts
  const serving = servingOf(facts)
  const { loadS } = podTimesOf(spec)
  const services = [buildHeadless(serving)]
  return buildStepChildren({
    ...serving,
    settings,
    spec,
    scaling,
    replicas,
    replacesFirst,
    podTemplate,
    loadS,
    services,
  })
}

function servingOf({ childName, namespace, name }: ModelFacts): ServingMetadata {
  return {
    metadata: { name: childName, namespace, labels: stepLabels(name) },
    selector: stepSelector(name),
  }
}

/** Builds the headless Service: a client that calls a model directly sees its pods. Routers find them by their heartbeats. */
function buildHeadless(serving: ServingMetadata): Desired<Service> {
  const { metadata, spec } = buildService(serving, [
    grpcPort('grpc', PORTS.grpc),
    servicePort('http', PORTS.http),
    servicePort('metrics', PORTS.metrics),
  ])
  return { metadata, spec: { clusterIP: 'None', ...spec } }
}

import { ModelSpec } from '@tutti/api'
import type { Container, Deployment, KubeObject, PodSpec } from '@tutti/kube'
import { buildGroupChildren, buildHeadless } from '../resources/build-model-children.ts'
import { toModelFacts } from '../resources/model-facts.ts'
import { planReplicas, toScaling } from '../resources/model-scaling.ts'
import { groupOfModel } from '../resources/pod-group.ts'
import { podLabelsOf } from '../resources/step-labels.ts'
import type { StepPodSettings } from '../resources/step-settings.ts'
import type { DesiredChild } from '../runtime/children.ts'
import { stepSettings } from './step-settings.ts'

/** Labels of the children of the Model `yolo`. */
export const LABELS = {
  'app.kubernetes.io/managed-by': 'tutti-operator',
  'app.kubernetes.io/name': 'tutti-step',
  'app.kubernetes.io/instance': 'yolo',
  'app.kubernetes.io/component': 'step',
  'tutti.dev/model': 'yolo',
}

/** Labels of its pods and of its Deployment. */
export const POD_LABELS = { ...LABELS, 'model.tutti.dev/yolo': 'true' }

/** The fields of a Model that a test sets. */
export type Spec = Partial<ModelSpec>

export interface BuildOptions {
  readonly name?: string
  readonly settings?: Partial<StepPodSettings>
  /** Labels of the Model. */
  readonly labels?: Readonly<Record<string, string>>
  readonly credentialsDigest?: string
  readonly live?: number
}

/** Builds all children of the Model `yolo` in the namespace `vision`. */
export function build(fields: Spec = {}, o: BuildOptions = {}): readonly DesiredChild[] {
  const spec = ModelSpec.parse({
    modelFormat: { name: 'onnx' },
    storageUri: 'pvc://models/faces/yolo',
    ...fields,
  })
  const { name = 'yolo', labels, credentialsDigest, live } = o
  const facts = toModelFacts({
    name,
    namespace: 'vision',
    spec,
    settings: stepSettings(o.settings),
    ...(labels !== undefined && { labels: podLabelsOf(labels) }),
    ...(credentialsDigest !== undefined && { credentialsDigest }),
  })
  const scaling = toScaling(spec)
  const replicas = planReplicas(scaling, { live })
  return buildGroupChildren(groupOfModel(facts), {
    scaling,
    replicas,
    services: [buildHeadless(facts)],
  })
}

export function child(children: readonly DesiredChild[], kind: string): KubeObject | undefined {
  return children.find(({ resource }) => resource.kind === kind)?.object as KubeObject | undefined
}

export function deployment(fields?: Spec, o?: BuildOptions): Deployment {
  return child(build(fields, o), 'Deployment') as Deployment
}

export function podSpec(fields?: Spec, o?: BuildOptions): PodSpec {
  return deployment(fields, o).spec.template.spec
}

export function main(fields?: Spec, o?: BuildOptions): Container | undefined {
  return podSpec(fields, o).containers.find(({ name }) => name === 'main')
}

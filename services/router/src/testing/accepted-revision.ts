import { SLEEP_ANNOTATION, type SleepMark } from '@tutti/api'
import { type AcceptedEnsemble, type AcceptedModel, toAcceptedJson } from '@tutti/graph'
import type { RevisionObject } from '../accepted/accepted-revisions.ts'
import { type BeyondConfig, toConfig, toDefinition } from './test-router.ts'

interface RevisionDraft {
  /** Name of the ControllerRevision; its first part is the resource's name. */
  readonly name: string
  /** As clients call it. */
  readonly model: string
  /** config.pbtxt without the name. */
  readonly config: string
  /** The number of the ControllerRevision; 1 if absent. */
  readonly revision?: number
  /** UID of the resource; its name if absent. */
  readonly uid?: string
  readonly createdAt?: string
  /** Terms of a Model that may sleep. */
  readonly sleep?: SleepMark
}

/** The ControllerRevision of an accepted Model. */
export function modelRevision(
  o: RevisionDraft & {
    /** By version, the step's revision. */
    readonly versions: Readonly<Record<number, string>>
  },
): RevisionObject {
  const accepted: AcceptedModel = {
    kind: 'Model',
    modelName: o.model,
    resource: resourceOf(o),
    config: toConfig(o.model, o.config),
    versions: Object.entries(o.versions).map(([version, revision]) => ({
      version: Number(version),
      revision,
    })),
  }
  return toObject(o, toAcceptedJson(accepted))
}

/** The ControllerRevision of an accepted Ensemble. */
export function ensembleRevision(
  o: RevisionDraft & {
    /** By name, config.pbtxt without the name. */
    readonly models: Readonly<Record<string, string>>
    readonly beyond?: BeyondConfig
  },
): RevisionObject {
  const { config, graph } = toDefinition(o.model, o.config, o.beyond)
  const steps = graph.steps.map((step, i) => ({ ...step, name: `step-${i}` }))
  const accepted: AcceptedEnsemble = {
    kind: 'Ensemble',
    modelName: o.model,
    resource: resourceOf(o),
    config,
    graph: { ...graph, steps },
    models: Object.fromEntries(
      Object.entries(o.models).map(([name, text]) => [name, toConfig(name, text)]),
    ),
  }
  return toObject(o, toAcceptedJson(accepted))
}

function resourceOf({ name, uid, revision = 1 }: RevisionDraft): AcceptedModel['resource'] {
  const [resource = name] = name.split('-')
  return { name: resource, uid: uid ?? resource, generation: revision }
}

function toObject(o: RevisionDraft, data: unknown): RevisionObject {
  const { name, revision = 1, createdAt: creationTimestamp = '2026-01-01T00:00:00Z', sleep } = o
  const annotations = sleep && { [SLEEP_ANNOTATION]: JSON.stringify(sleep) }
  const metadata = { name, creationTimestamp, ...(annotations && { annotations }) }
  return { metadata, revision, data: JSON.parse(JSON.stringify(data)) }
}

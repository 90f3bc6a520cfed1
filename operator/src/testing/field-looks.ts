import type { PlainObject } from '@tutti/kube/testing'
import type { CasePlace } from './case-rig.ts'

/** The objects that the operator made for one resource, and its conditions. Equal specs give equal looks, whatever was before. */
export interface FieldLook {
  readonly made: readonly string[]
  /** Conditions as `TYPE=STATUS/REASON`; undefined while the operator has not looked at the newest generation. */
  readonly conditions: readonly string[] | undefined
}

/** The looks by kind and name, `Model/yolo`. Objects without an owner are at ''. */
export type FieldLooks = ReadonlyMap<string, FieldLook>

/** Looks at all resources of a place. @param place - its operator is at rest, and its cluster has Gateway API. */
export async function lookAtFields(place: CasePlace): Promise<FieldLooks> {
  const objects: PlainObject[] = (await place.look()).map((text) => JSON.parse(text))
  const made = new Map<string, string[]>()
  const conditions = new Map<string, readonly string[] | undefined>()
  const add = (owner: string, text: string): void =>
    void made.set(owner, [...(made.get(owner) ?? []), text])
  for (const object of withoutHistory(objects)) {
    const { plural, name, owners } = object
    const kind = RESOURCES[plural]
    if (kind === undefined) add(owners[0] ?? '', JSON.stringify(object))
    else conditions.set(`${kind}/${name}`, conditionsOf(object))
  }
  for (const { metadata, spec } of await place.plain.list(place.path('httproutes'))) {
    const { name, labels, ownerReferences = [] } = metadata
    const [owner] = ownerReferences
    add(`${owner?.kind}/${owner?.name}`, JSON.stringify({ name, labels, spec }))
  }
  // The revision has the uid of a Secret in it, which each namespace has of its own.
  for (const { models, revision: _, ...route } of await edgeRoutes(place)) {
    for (const model of models) add(`Ensemble/${model}`, JSON.stringify(route))
  }
  const keys = new Set([...made.keys(), ...conditions.keys()])
  return new Map(
    [...keys].map((key) => [
      key,
      { made: (made.get(key) ?? []).toSorted(), conditions: conditions.get(key) },
    ]),
  )
}

const RESOURCES: PlainObject = { models: 'Model', ensembles: 'Ensemble' }

/** The current content of ControllerRevisions, without numbers and generations, which tell only their history. */
function withoutHistory(objects: readonly PlainObject[]): readonly PlainObject[] {
  const revisions = objects.filter(({ plural }) => plural === 'controllerrevisions')
  const newest = (owner: string): number =>
    Math.max(...revisions.filter(({ owners }) => owners[0] === owner).map((one) => one['revision']))
  return objects.flatMap((object) => {
    const { plural, revision, owners, data } = object
    if (plural !== 'controllerrevisions') return [object]
    if (revision !== newest(owners[0])) return []
    const { resource: _, ...accepted } = data
    return [{ plural, owners, data: accepted }]
  })
}

function conditionsOf({
  generation,
  seen,
  conditions,
}: PlainObject): readonly string[] | undefined {
  if (seen !== generation) return undefined
  return conditions.map((one: string) => one.replace(/@\d+$/, ''))
}

/** Reads what routers let come from outside, of which `look` shows nothing: it is in a Secret. */
async function edgeRoutes({ plain, path }: CasePlace): Promise<readonly PlainObject[]> {
  const { status, body } = await plain.send('GET', path('secrets', 'tutti-router-edge'))
  if (status === 404) return []
  return JSON.parse(Buffer.from(body['data']['edge.json'], 'base64').toString()).routes
}

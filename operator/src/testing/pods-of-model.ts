import { setTimeout as sleep } from 'node:timers/promises'
import type { PlainObject } from '@tutti/kube/testing'
import type { CasePlace } from './case-rig.ts'

/** Lists the pods that serve a Model and stay, of whichever Deployment. */
export async function podsOf(
  { plain, path }: Pick<CasePlace, 'plain' | 'path'>,
  model: string,
): Promise<readonly PlainObject[]> {
  const pods = await plain.list(`${path('pods')}?labelSelector=model.tutti.dev%2F${model}`)
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

const LOOK_MS = 100
const LIMIT_MS = 60_000

/** Resolves once the pods that stay are of these hosts, the values of such a label. @throws Error after a minute. */
export async function untilPodsOf(
  place: Pick<CasePlace, 'plain' | 'path'>,
  model: string,
  { label, hosts }: { readonly label: 'model' | 'ensemble'; readonly hosts: readonly string[] },
): Promise<void> {
  const endMs = performance.now() + LIMIT_MS
  for (;;) {
    const pods = await podsOf(place, model)
    const found = pods.map(({ metadata }) => metadata.labels[`tutti.dev/${label}`])
    if (JSON.stringify(found) === JSON.stringify(hosts)) return
    if (performance.now() > endMs)
      throw new Error(`got ${JSON.stringify(found)}, want ${JSON.stringify(hosts)}`)
    await sleep(LOOK_MS)
  }
}

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { StartedProcess } from '@tutti/chassis/testing'
import { heldBy } from '../control-churn.ts'
import { collectGarbage } from '../request-path/inspected-process.ts'
import { restCall } from '../rest-call.ts'
import type { Numbers } from './soak-report.ts'

/** With this environment a Node process lets `heldNow` collect its garbage. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/** Measures what a process that was started with INSPECTED holds after its garbage was collected, by names of the report. */
export async function heldNow(name: string, started: StartedProcess): Promise<Numbers> {
  const { objectBytes, codeBytes } = await collectGarbage(started)
  // Collected objects close what they had open a moment later.
  await settled(started)
  const { residentBytes, descriptors, threads } = await heldBy({ process: started })
  return {
    [`${name}: heap bytes`]: objectBytes,
    [`${name}: code bytes`]: codeBytes,
    [`${name}: resident bytes`]: residentBytes,
    [`${name}: descriptors`]: descriptors,
    [`${name}: threads`]: threads,
    [`${name}: processes`]: countBelow(started.pid),
  }
}

const PAUSE_MS = 500
const MOST_PAUSES = 20
/** Connections of clients that keep them for a while end meanwhile. */
const FEWEST_QUIET = 4

/** Waits until its descriptors and threads are the same for some time, or for ten seconds. */
async function settled(started: StartedProcess): Promise<void> {
  let [quiet, before] = [0, '']
  for (let pause = 0; pause < MOST_PAUSES && quiet < FEWEST_QUIET; pause += 1) {
    await delay(PAUSE_MS)
    const { descriptors, threads } = await heldBy({ process: started })
    const now = `${descriptors} ${threads}`
    quiet = now === before ? quiet + 1 : 0
    before = now
  }
}

/** All processes that it or those that it started have started, itself included. */
function countBelow(pid: number): number {
  const parents = new Map(readdirSync('/proc').filter(isNumber).flatMap(parentOf))
  const isBelow = (one: number): boolean =>
    one === pid || (parents.has(one) && isBelow(parents.get(one) ?? 0))
  return [...parents.keys()].filter(isBelow).length
}

function isNumber(entry: string): boolean {
  return /^\d+$/.test(entry)
}

function parentOf(entry: string): readonly (readonly [number, number])[] {
  try {
    const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
    const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return [[Number(entry), Number(parent)]]
  } catch {
    // It ended meanwhile.
    return []
  }
}

/** Reads what the monitoring of a nats-server counts. */
export async function heldByNats(monitoringPort: number): Promise<Numbers> {
  const answer = await restCall(monitoringPort, 'GET', '/varz')
  const { connections, subscriptions, mem } = JSON.parse(answer.body.toString())
  return {
    'NATS: connections': connections,
    'NATS: subscriptions': subscriptions,
    'NATS: memory bytes': mem,
  }
}

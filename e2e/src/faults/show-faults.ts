import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import { FAULTS } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { startNetwork } from './network.ts'
import { type FaultRow, runFault } from './run-fault.ts'
import { type System, startOneProcess, startProcesses } from './system.ts'

/** Where reports are. */
export const REPORTS = `${ROOT}.tap/faults`

/** Brings faults over each way to run, one after the other. @returns what they did; those that were skipped are not in it. */
export async function showFaults(
  t: Test,
  o: { readonly isQuick: boolean },
): Promise<readonly FaultRow[]> {
  const network = await startNetwork(t)
  const client = await network.addHost('client')
  const rows: FaultRow[] = []
  for (const [way, start] of WAYS) {
    const faults = faultsOf(way, o.isQuick)
    if (faults.length === 0) continue
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await t.test(way, async (each) => {
      rows.push(...(await showAll(each, await start(each, network, client), faults)))
    })
  }
  return rows
}

/** The ways to run that can be harmed here. */
export const WAYS = [
  ['one process', startOneProcess],
  ['processes', startProcesses],
] as const

/** Those that TUTTI_FAULTS names by a part of way and name, or all. */
function faultsOf(way: System['way'], isQuick: boolean): readonly Fault[] {
  const wanted = process.env['TUTTI_FAULTS']
  return FAULTS.filter((fault) => {
    if (!fault.ways.includes(way)) return false
    if (wanted !== undefined)
      return wanted.split(';').some((part) => `${way}: ${fault.name}`.includes(part))
    return fault.isQuick === true || !isQuick
  })
}

async function showAll(
  t: Test,
  system: System,
  faults: readonly Fault[],
): Promise<readonly FaultRow[]> {
  const rows: FaultRow[] = []
  for (const fault of faults) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await t.test(fault.name, { skip: fault.skip ?? false }, async (one) => {
      rows.push(await runFault(one, system, fault))
    })
  }
  return rows
}

/** Writes a file for each way to run, for people and programs, and for `write-table.ts`. What did not run this time keeps its row. */
export async function writeReports(rows: readonly FaultRow[]): Promise<void> {
  await mkdir(REPORTS, { recursive: true })
  for (const [way] of WAYS) {
    // oxlint-disable-next-line no-await-in-loop -- two
    const before = await readReport(way).catch(() => [])
    const known = [...before, ...rows.filter((row) => row.way === way)]
    const all = FAULTS.flatMap(({ name }) => known.findLast(({ fault }) => fault === name) ?? [])
    // oxlint-disable-next-line no-await-in-loop -- two
    await writeFile(`${REPORTS}/${way}.json`, `${JSON.stringify(all, undefined, 2)}\n`)
  }
}

/** @throws Error if there is none. */
export async function readReport(way: System['way']): Promise<readonly FaultRow[]> {
  return JSON.parse(await readFile(`${REPORTS}/${way}.json`, 'utf8'))
}

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { directKind } from '../processes/direct-flags.ts'
import { ROOT } from '../serving.ts'
import { FAULTS } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { startNetwork } from './network.ts'
import { type FaultRow, runFault } from './run-fault.ts'
import { reportOf, type System, startOneProcess, startProcesses, type Way } from './system.ts'

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
  const direct = directKind()
  for (const [way, start] of direct === 'off' ? WAYS : [PROCESSES_WAY]) {
    const faults = faultsOf(way, o.isQuick)
    if (faults.length === 0) continue
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await t.test(reportOf({ way, direct }), async (each) => {
      rows.push(...(await showAll(each, await start(each, network, client), faults)))
    })
  }
  return rows
}

const PROCESSES_WAY = ['processes', startProcesses] as const

/** The ways to run that can be harmed here. With TUTTI_DIRECT it is processes alone. */
const WAYS = [['one process', startOneProcess], PROCESSES_WAY] as const

/** Those that TUTTI_FAULTS names by a part of way and name, or all. */
function faultsOf(way: Way, isQuick: boolean): readonly Fault[] {
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

/** The tables of our pages: of which report, and the faults in their order. With direct connections, those that these make a difference to. */
export const TABLES = [
  { report: 'one process', page: 'docs/reliability.md', faults: faultsIn('one process') },
  { report: 'processes', page: 'docs/reliability.md', faults: faultsIn('processes') },
  {
    report: 'processes over tls',
    page: 'docs/processes.md',
    faults: faultsIn('processes').filter(({ directErrors }) => directErrors !== undefined),
  },
] as const

function faultsIn(way: Way): readonly Fault[] {
  return FAULTS.filter(({ ways }) => ways.includes(way))
}

/** Writes a file for each way to run, for people and programs, and for `write-table.ts`. What did not run this time keeps its row. */
export async function writeReports(rows: readonly FaultRow[]): Promise<void> {
  await mkdir(REPORTS, { recursive: true })
  for (const report of new Set(rows.map(({ way }) => way))) {
    // oxlint-disable-next-line no-await-in-loop -- few
    const before = await readReport(report).catch(() => [])
    const known = [...before, ...rows.filter(({ way }) => way === report)]
    const all = FAULTS.flatMap(({ name }) => known.findLast(({ fault }) => fault === name) ?? [])
    // oxlint-disable-next-line no-await-in-loop -- few
    await writeFile(`${REPORTS}/${report}.json`, `${JSON.stringify(all, undefined, 2)}\n`)
  }
}

/** @throws Error if there is none. */
export async function readReport(report: string): Promise<readonly FaultRow[]> {
  return JSON.parse(await readFile(`${REPORTS}/${report}.json`, 'utf8'))
}

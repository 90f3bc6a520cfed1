import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { cpuUs, median, printTable } from './figures.ts'
import { type BenchServer, ROOT, startTutti } from './servers.ts'

/** Times that a page is loaded, each in a browser context of its own. */
const OPENINGS = 5
/** Seconds over which processor time is counted, of ticks of 10 ms. */
const OPEN_S = 60
const CLOSED_S = 30
/** For what a server does after its start, and after a page has gone. */
const SETTLE_S = 8

const MODEL = 'add_one_batch'
const STEP = `step { model_name: "${MODEL}" model_version: -1`

/** A server, and the view of it that is opened. */
interface Case {
  readonly name: string
  /** Ensembles, by name: their numbers of steps, one after the other. */
  readonly ensembles: Readonly<Record<string, number>>
  readonly address: string
  /** Selector of an element that is there once the view is. */
  readonly shown: string
}

const CASES: readonly Case[] = [
  {
    name: 'list of 2',
    ensembles: { chain: 2 },
    address: '/console',
    shown: 'tbody tr:nth-child(2)',
  },
  {
    name: 'list of 1,000',
    ensembles: Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`ens_${i}`, 1])),
    address: '/console',
    shown: 'tbody tr:nth-child(1000)',
  },
  {
    name: '200 steps',
    ensembles: { long: 200 },
    address: '/console#/models/long',
    shown: '.graph .step',
  },
]

/**
 * Measures what the console costs: first paint and the view with its data, in milliseconds, in a browser of this machine, and the
 * processor time of the server in parts of a core, with one page open and with none. It needs chromium (TUTTI_CHROMIUM), and takes
 * seven minutes.
 */
export async function benchConsole(nodeFlags: readonly string[]): Promise<void> {
  const executablePath = process.env['TUTTI_CHROMIUM']
  if (executablePath === undefined) {
    console.log(process.env['TUTTI_CHROMIUM_MISSING'] ?? 'TUTTI_CHROMIUM is not set')
    return
  }
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({ executablePath, args })
  try {
    const rows: string[][] = []
    for (const one of CASES) rows.push(await measure(one, { browser, nodeFlags }))
    const heads = ['view', 'first paint ms', 'with data ms', 'closed %', 'open %', 'closed again %']
    printTable([heads, ...rows])
  } finally {
    await browser.close()
  }
}

async function measure(
  { name, ensembles, address, shown }: Case,
  { browser, nodeFlags }: { readonly browser: Browser; readonly nodeFlags: readonly string[] },
): Promise<string[]> {
  const repository = await makeRepository(ensembles)
  const opened = new AsyncDisposableStack()
  opened.defer(() => rm(repository, { recursive: true }))
  try {
    const server = await startTutti(repository, { nodeFlags, flags: ['--console-port=0'] })
    opened.defer(() => server.stop())
    const open = () => openView(browser, { port: server.consolePort, address, shown })
    const views: Opened[] = []
    for (let i = 0; i < OPENINGS; i++) {
      const view = await open()
      views.push(view)
      await view.close()
    }
    await sleep(SETTLE_S * 1000)
    const closed = await percentOf(server, CLOSED_S)
    const view = await open()
    await sleep(SETTLE_S * 1000)
    const during = await percentOf(server, OPEN_S)
    await view.close()
    await sleep(SETTLE_S * 1000)
    const again = await percentOf(server, CLOSED_S)
    return [
      name,
      median(views.map(({ paintMs }) => paintMs)).toFixed(0),
      median(views.map(({ shownMs }) => shownMs)).toFixed(0),
      ...[closed, during, again].map((percent) => percent.toFixed(2)),
    ]
  } finally {
    await opened.disposeAsync()
  }
}

interface Opened {
  readonly paintMs: number
  readonly shownMs: number
  close(): Promise<void>
}

async function openView(
  browser: Browser,
  o: { readonly port: number; readonly address: string; readonly shown: string },
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${o.port}${o.address}`)
  await page.locator(o.shown).first().waitFor({ timeout: 120_000 })
  const [shown, paint]: unknown[] = await page.evaluate(
    `[performance.now(), performance.getEntriesByName('first-contentful-paint')[0]?.startTime]`,
  )
  return { paintMs: Number(paint), shownMs: Number(shown), close: () => context.close() }
}

/** Processor time of a server over some seconds, in percent of a core. */
async function percentOf({ pid }: BenchServer, seconds: number): Promise<number> {
  const [before, beganMs] = [cpuUs(pid), performance.now()]
  await sleep(seconds * 1000)
  return (cpuUs(pid) - before) / 10 / (performance.now() - beganMs)
}

/** One model, and ensembles that call it. */
async function makeRepository(ensembles: Case['ensembles']): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  const from = join(ROOT, 'model_repository', '.variants', 'fixtures', 'basic', MODEL)
  await cp(from, join(folder, MODEL), { recursive: true })
  for (const [name, steps] of Object.entries(ensembles)) {
    await mkdir(join(folder, name, '1'), { recursive: true })
    await writeFile(join(folder, name, 'config.pbtxt'), configOf(steps))
  }
  return folder
}

function configOf(steps: number): string {
  const written = Array.from({ length: steps }, (_, i) => {
    const [from, to] = [i === 0 ? 'X' : `t${i - 1}`, i === steps - 1 ? 'Y' : `t${i}`]
    return `${STEP} input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
  })
  return `platform: "ensemble" max_batch_size: 8
    input { name: "X" data_type: TYPE_FP32 dims: [ 16 ] }
    output { name: "Y" data_type: TYPE_FP32 dims: [ 16 ] }
    ensemble_scheduling { ${written.join('\n')} }`
}

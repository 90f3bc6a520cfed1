import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median, printTable } from './figures.ts'
import { ROOT } from './servers.ts'

const ROUNDS = 11
const REPORT = fileURLToPath(new URL('./report-usage.cjs', import.meta.url))

const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  'node -e 0': ['-e', '0'],
  'tutti --version': ['services/cli/dist/main.js', '--version'],
  'tutti --help': ['services/cli/dist/main.js', '--help'],
  'tutti serve --help': ['services/cli/dist/main.js', 'serve', '--help'],
  'kubectl tutti --help': ['services/kubectl/dist/main.js', '--help'],
}

/** The resources that a process used until its end. */
interface Usage {
  readonly cpuMs: number
  readonly elapsedMs: number
  readonly peakBytes: number
}

/** Prints what commands cost that do almost nothing, beside a bare Node, in turn. */
export async function printStarts(): Promise<void> {
  const usages = new Map<string, Usage[]>()
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, args] of Object.entries(PROGRAMS)) {
      usages.set(name, [...(usages.get(name) ?? []), usageOf(args)])
    }
  }
  const bareMs = median((usages.get('node -e 0') ?? []).map(({ cpuMs }) => cpuMs))
  console.log(`\nstart: medians of ${ROUNDS} runs of each, in turn`)
  printTable([
    ['', 'cpu ms', 'over node', 'elapsed ms', 'peak MB'],
    ...[...usages].map(([name, runs]) => {
      const cpuMs = median(runs.map((run) => run.cpuMs))
      return [
        name,
        cpuMs.toFixed(0),
        (cpuMs / bareMs).toFixed(1),
        median(runs.map((run) => run.elapsedMs)).toFixed(0),
        (median(runs.map((run) => run.peakBytes)) / 1e6).toFixed(0),
      ]
    }),
  ])
}

function usageOf(args: readonly string[]): Usage {
  const started = performance.now()
  const { status, stderr } = spawnSync(process.execPath, ['--require', REPORT, ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const elapsedMs = performance.now() - started
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  return { elapsedMs, ...JSON.parse(stderr) }
}

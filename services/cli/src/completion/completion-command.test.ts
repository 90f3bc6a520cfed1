// needs: shells
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import { type FlagSpec, withDashes } from '@tutti/chassis'
import { loadCommands } from '@tutti/command-line/program'
import t, { type Test } from 'tap'
import { COMMANDS as ENTRIES } from '../commands.ts'
import { echo, serveEcho } from '../testing/echo-server.ts'
import { runCommand } from '../testing/run-command.ts'
import { installTutti, openTerminal, runProgram } from '../testing/run-shell.ts'

/*
 * The scripts of `tutti completion` in real shells.
 */

// Each list of models starts a process.
t.setTimeout(120_000)

const COMMANDS = await loadCommands(ENTRIES)

const MODELS = {
  numbers: echo('FP32', [3]),
  'with space': echo('INT32', [1]),
  'x$(touch pwned)': echo('INT32', [1]),
}
/** As a server lists them: only those that it can be asked for. */
const NAMES = Object.keys(MODELS).toSorted()

/** A folder with the `tutti` of the tests, the scripts, and what paths complete to. */
async function install(t: Test) {
  const folder = t.testdir({ models: {}, 'model.yaml': '', bin: {} })
  const environment = await installTutti(join(folder, 'bin'))
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out, err } = await runCommand(['completion', shell])
    t.match({ code, err }, { code: 0, err: '' }, shell)
    await writeFile(join(folder, `tutti.${shell}`), out)
  }
  return { folder, o: { env: environment, cwd: folder } }
}

function flagsOf(flags: Readonly<Record<string, FlagSpec>>): readonly string[] {
  const known = Object.entries(flags).filter(([, spec]) => spec.isIgnored !== true)
  const names = known.flatMap(([name, spec]) => [name, ...(spec.aliases ?? [])])
  return [...names, 'help', 'h'].map(withDashes).toSorted()
}

function sortedLines(text: string): readonly string[] {
  return text.split('\n').filter(Boolean).toSorted()
}

/** Asks bash, as Readline does, what it offers at the end of each line. @param lines - in bash's words. */
async function askBash(
  lines: readonly (readonly string[])[],
  { folder, o }: Awaited<ReturnType<typeof install>>,
): Promise<readonly (readonly string[])[]> {
  const asked = lines.map((words) => {
    const quoted = words.map((word) => `'${word}'`).join(' ')
    // Without a space before = and : and behind them, as they are written.
    const line = words.join(' ').replace(/ ?([=:]) ?/g, '$1')
    return `COMP_WORDS=(${quoted}) COMP_CWORD=${words.length - 1} COMP_LINE='${line}' COMP_POINT=${line.length}
_tutti; ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"; echo --end`
  })
  const script = [`source '${folder}/tutti.bash'`, ...asked].join('\n')
  const text = await runProgram('bash', ['--norc', '--noprofile', '-c', script], o)
  return text.split('--end\n').slice(0, -1).map(sortedLines)
}

await t.test('bash offers every flag of every command, and what flags take', async (t) => {
  const installed = await install(t)
  const { grpc, rest } = await serveEcho(t, MODELS, [], installed.folder)
  const lists = await askBash(
    COMMANDS.map(({ name }) => ['tutti', name, '--']),
    installed,
  )
  COMMANDS.forEach(({ name, flags }, i) => {
    const long = flagsOf(flags).filter((flag) => flag.startsWith('--'))
    t.same(lists[i], long, name)
  })
  const [scheme = '', port = ''] = grpc.split('://127.0.0.1:')
  const url = [scheme, ':', '//127.0.0.1', ':', port]
  const escaped = ['numbers', 'with\\ space', 'x\\$\\(touch\\ pwned\\)']
  const cases: readonly (readonly [readonly string[], readonly string[]])[] = [
    [['tutti', ''], [...COMMANDS.map(({ name }) => name), '--help', '--version'].toSorted()],
    [['tutti', 'se'], ['serve']],
    [
      ['tutti', 'serve', '--model-control-mode', ''],
      ['explicit', 'none', 'poll'],
    ],
    [['tutti', 'serve', '--model-control-mode', '=', 'ex'], ['explicit']],
    [
      ['tutti', 'serve', '--model-control-mode', '='],
      ['explicit', 'none', 'poll'],
    ],
    [['tutti', 'serve', '--grpc-po'], ['--grpc-port']],
    [['tutti', 'serve', '--grpc-port', ''], []],
    [['tutti', 'serve', ''], []],
    [['tutti', 'import', ''], ['triton']],
    [
      ['tutti', 'completion', ''],
      ['bash', 'fish', 'zsh'],
    ],
    [['tutti', 'nonsense', '--'], []],
    [['tutti', 'infer', '--url', ...url, 'nu'], ['numbers']],
    [['tutti', 'infer', '--url', '=', ...url, '--format', 'json', ''], escaped],
    [['tutti', 'infer', '--url', '=', ...url, 'numbers', ''], []],
    [['tutti', 'infer', '--url', 'http', ':', rest.replace('http:', ''), '--', ''], escaped],
  ]
  const answers = await askBash(
    cases.map(([line]) => line),
    installed,
  )
  cases.forEach(([line, wanted], i) => t.same(answers[i], wanted, line.join(' ')))
  await t.rejects(readFile(join(installed.folder, 'pwned')), 'a name of a model is never executed')
})

/** Lines with keys, and what the words of the command begin with in the end. */
const TYPED: readonly (readonly [string, string])[] = [
  ['tutti ser\t--model-repos\tmod\t', 'serve --model-repository models'],
  [
    'tutti serve --model-control-mode=ex\t--grpc-po\t1',
    'serve --model-control-mode explicit --grpc-port 1',
  ],
  ['tutti validate -f model.\t', 'validate -f model.yaml'],
  ['tutti serve --model-repository=mode\t', 'serve --model-repository models'],
  ['tutti import tr\tmo\t', 'import triton models'],
  ['tutti infer --url URL wi\t--inp\t', 'infer --url URL <with space> --input'],
]

/** zsh writes `--flag=`, bash a space; bash keeps the slash of a folder. */
function comparable(line: string): string {
  return line.replace(/(<--[a-z-]+)=/g, '$1> <').replace(/<(\S+?)\/?>/g, '$1')
}

/** Types the lines into a shell at a terminal. */
async function typeAll(
  t: Test,
  shell: string,
  setup: string,
  { folder, o }: Awaited<ReturnType<typeof install>>,
): Promise<void> {
  const { grpc } = await serveEcho(t, MODELS, [], folder)
  const terminal = openTerminal(shell, o)
  t.teardown(() => terminal.close())
  await terminal.type(`${setup}; echo set''up\n`, /setup\r?\n/)
  for (const [keys, wanted] of TYPED) {
    const line = await terminal.type(`${keys.replace('URL', grpc)}\n`, /ran <.*\r?\n/)
    const words = comparable(line)
    const isWanted = words.startsWith(`ran ${wanted.replace('URL', grpc)}`)
    t.ok(isWanted, `${JSON.stringify(keys)}: ${words}`)
  }
}

await t.test('bash completes what is typed', async (t) => {
  const installed = await install(t)
  await typeAll(t, 'bash --norc --noprofile -i', 'source tutti.bash', installed)
})

await t.test('zsh completes what is typed', { skip: missing('zsh') }, async (t) => {
  const installed = await install(t)
  const setup = 'autoload -Uz compinit; compinit -u -D; source ./tutti.zsh'
  await typeAll(t, `${env['TUTTI_ZSH']} -f -i`, setup, installed)
})

/** Asks fish what it offers at the end of each line. */
async function askFish(
  lines: readonly string[],
  { o }: Awaited<ReturnType<typeof install>>,
): Promise<readonly (readonly string[])[]> {
  const asked = lines.map(
    (line) => `complete -C '${line}' | string replace -r '\\t.*' ''; echo --end`,
  )
  const script = ['source tutti.fish', ...asked].join('\n')
  const text = await runProgram(env['TUTTI_FISH'] ?? '', ['--no-config', '-c', script], o)
  return text.split('--end\n').slice(0, -1).map(sortedLines)
}

await t.test('fish offers the same', { skip: missing('fish') }, async (t) => {
  const installed = await install(t)
  const { grpc } = await serveEcho(t, MODELS, [], installed.folder)
  const lists = await askFish(
    COMMANDS.map(({ name }) => `tutti ${name} --`),
    installed,
  )
  COMMANDS.forEach(({ name, flags }, i) => {
    const long = flagsOf(flags).filter((flag) => flag.startsWith('--'))
    t.same(
      lists[i]?.map((flag) => flag.replace('=', '')),
      long,
      name,
    )
  })
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['tutti se', ['serve']],
    ['tutti serve --model-control-mode ', ['explicit', 'none', 'poll']],
    ['tutti serve --model-control-mode=ex', ['--model-control-mode=explicit']],
    ['tutti serve --grpc-port ', []],
    ['tutti serve --model-repository mo', ['models/']],
    ['tutti validate -f model.', ['model.yaml']],
    ['tutti import ', ['triton']],
    ['tutti import triton mo', ['models/']],
    [`tutti infer --url ${grpc} `, NAMES],
    [`tutti infer --url=${grpc} --format json nu`, ['numbers']],
    [`tutti infer --url=${grpc} numbers `, []],
  ]
  const answers = await askFish(
    cases.map(([line]) => line),
    installed,
  )
  cases.forEach(([line, wanted], i) => t.same(answers[i], wanted, line))
})

function missing(shell: 'zsh' | 'fish'): string | false {
  const name = `TUTTI_${shell.toUpperCase()}`
  return env[`${name}_MISSING`] ?? (env[name] === undefined && `${name} is not set`)
}

await t.test('other shells are refused, and no server gives no models', async (t) => {
  t.match(await runCommand(['completion', 'tcsh']), {
    code: 2,
    err: "tutti completion: got 'tcsh', want one of bash, zsh, fish\n",
  })
  t.match(await runCommand(['completion']), { code: 2, err: /got nothing, want one of bash/ })
  t.match(await runCommand(['completion', 'bash', 'zsh']), { code: 2, err: /got 'bash zsh'/ })
  for (const words of [['--url=grpc://127.0.0.1:1'], ['--url'], ['--url=x'], ['--nonsense']]) {
    const got = await runCommand(['completion', 'models', '--', ...words])
    t.same(got, { code: 0, out: '', err: '' }, words.join(' '))
  }
})

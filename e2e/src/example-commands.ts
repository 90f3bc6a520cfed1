import { cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Ended, ROOT, runProgram } from './serving.ts'
import { PYTHON } from './triton-client.ts'

export const EXAMPLES = `${ROOT}examples`

/** The folders of the examples, in order. */
export const EXAMPLE_FOLDERS: readonly string[] = (await readdir(EXAMPLES, { withFileTypes: true }))
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  .map(({ name }) => name)
  .toSorted()

/** The command that serves an example, and those that ask it. */
interface ExampleCommands {
  readonly serves: string
  readonly asks: string
}

/** The example whose networks are not in the repository; e2e/src/ocr has its test. */
export const FETCHED_EXAMPLE = 'read-text'

/** Reads the commands of an example: blocks of its README, one behind the other. */
async function commandsOf(folder: string): Promise<ExampleCommands> {
  const text = await readFile(join(EXAMPLES, folder, 'README.md'), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)\n```$/gms)].map(([, block = '']) => block)
  const at = blocks.findIndex((block) => block.includes('-- serve '))
  return { serves: blocks[at] ?? '', asks: blocks[at + 1] ?? '' }
}

/** The commands of each example, by its folder. */
export const EXAMPLE_COMMANDS: ReadonlyMap<string, ExampleCommands> = new Map(
  await Promise.all(EXAMPLE_FOLDERS.map(async (name) => [name, await commandsOf(name)] as const)),
)

/** The manifests of the examples, as paths from the root of the checkout. */
export const EXAMPLE_MANIFESTS: readonly string[] = [
  ...new Set(
    [...EXAMPLE_COMMANDS.values()].map(({ serves }) => /-f (\S+)/.exec(serves)?.[1] ?? ''),
  ),
]

/** Returns the manifests whose networks are there as one text. Several of them have the same Models, word for word. */
export async function joinExampleManifests(): Promise<string> {
  const own = EXAMPLE_MANIFESTS.filter((path) => !path.includes(`/${FETCHED_EXAMPLE}/`))
  const texts = await Promise.all(own.map((path) => readFile(`${ROOT}${path}`, 'utf8')))
  const documents = texts.flatMap((text) => text.replaceAll(/^#.*\n/gm, '').split(/^---\n/m))
  return [...new Set(documents.map((text) => text.trim()))].join('\n---\n')
}

/** Lists the repositories with the models of the examples, as flags: the signatures of all of them. */
export async function exampleRepositories(): Promise<readonly string[]> {
  const paths = ['model_repository', ...EXAMPLE_FOLDERS.map((name) => `examples/${name}/models`)]
  const there = await Promise.all(
    paths.map((path) =>
      readdir(ROOT + path).then(
        () => [`--model-repository=${ROOT}${path}`],
        () => [],
      ),
    ),
  )
  return there.flat()
}

/**
 * A folder in which the commands of the READMEs run as they stand: a copy of the examples whose scripts know the server, and
 * an `npm` that runs the built `tutti`.
 */
export async function prepareCheckout(t: Test, grpcPort: number) {
  const folder = t.testdir({ bin: {} })
  const bin = join(folder, 'bin')
  await cp(EXAMPLES, join(folder, 'examples'), { recursive: true })
  await symlink(`${ROOT}model_repository`, join(folder, 'model_repository'))
  const address = `127.0.0.1:${grpcPort}`
  const npm = `#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec '${process.execPath}' '${ROOT}services/cli/dist/main.js' "$@" --url=grpc://${address}\n`
  await writeFile(join(bin, 'npm'), npm, { mode: 0o755 })
  // A link to it would not find the packages of its environment.
  const python = `#!/bin/sh\nexec '${PYTHON}' "$@"\n`
  await writeFile(join(bin, 'python'), python, { mode: 0o755 })
  for (const name of await readdir(join(folder, 'examples'), { recursive: true })) {
    if (!name.endsWith('.py')) continue
    const file = join(folder, 'examples', name)
    await writeFile(file, (await readFile(file, 'utf8')).replace('localhost:8001', address))
  }
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` }
  const read = (path: string) => readFile(join(folder, path), 'utf8')
  const run = (command: string): Promise<Ended> =>
    runProgram('sh', ['-e', '-c', command], { cwd: folder, env })
  return { folder, env, read, run }
}

export type Checkout = Awaited<ReturnType<typeof prepareCheckout>>

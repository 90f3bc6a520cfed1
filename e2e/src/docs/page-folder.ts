import { appendFile, cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT, runProgram, runTutti } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { findSnippets } from './snippets.ts'

/** The only lines of npm that the pages' commands have here: the package itself is tested in e2e/src/package.test.ts. */
const NPM = `case "$*" in
  'install --global --ignore-scripts ./tutti-'*.tgz) exit ;;
  'run tutti -- '*) shift 3 ;;
  'run --silent tutti -- '*) shift 4 ;;
  *) echo "npm $*: not a command of a page" >&2; exit 2 ;;
esac
exec tutti "$@"`

/**
 * A folder in which the commands of a page run as they stand: the checkout's models and examples, and programs that are those of
 * this test: `tutti` as it is built, `python` with the client, and a `curl` that fails when the server refuses.
 */
export async function createPageFolder(t: Test, page: string, python: string): Promise<string> {
  const folder = await tempFolder(t)
  await mkdir(join(folder, 'bin'))
  await mkdir(join(folder, 'model_repository'))
  // A page may add models of its own.
  for (const name of await readdir(`${ROOT}model_repository`)) {
    await symlink(`${ROOT}model_repository/${name}`, join(folder, 'model_repository', name))
  }
  await symlink(`${ROOT}examples`, join(folder, 'examples'))
  const { out: curl } = await runProgram('sh', ['-c', 'command -v curl'])
  const ports = '--grpc-port=0 --http-port=0 --metrics-port=0'
  const tutti = `case "$1" in
  infer | trace) set -- "$@" --url="grpc://127.0.0.1:$TUTTI_GRPC_PORT" ;;
  bench) set -- "$@" --url="grpc://127.0.0.1:$TUTTI_GRPC_PORT" --duration=1 --warm-up=0 ;;
  doctor) set -- "$@" ${ports} --python='${python}' ;;
esac
exec '${process.execPath}' '${ROOT}services/cli/dist/main.js' "$@"`
  const programs = {
    npm: NPM,
    tutti,
    curl: `exec '${curl.trim()}' --silent --show-error --fail-with-body "$@"`,
    python: `exec '${python}' "$@"`,
  }
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(folder, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  }
  await PREPARE[page]?.(folder)
  return folder
}

/** Preparations by page: they make what its reader has beside the checkout, as the page says. */
const PREPARE: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  'docs/quick-start.md': async (folder) => {
    await cp(`${ROOT}examples/face/input.png`, join(folder, 'photo.png'))
    const config = textOf('docs/quick-start.md', 'pbtxt')
    const ensemble = join(folder, 'model_repository', 'pre_and_back')
    await mkdir(join(ensemble, '1'), { recursive: true })
    await writeFile(join(ensemble, 'config.pbtxt'), config)
    await cp(join(BASIC, 'add_one'), join(folder, 'models', 'scale'), { recursive: true })
  },
  'docs/torchscript.md': (folder) =>
    cp(`${ROOT}examples/face/input.png`, join(folder, 'photo.png')),
  'docs/manifests.md': async (folder) => {
    await mkdir(join(folder, 'manifests'))
    await writeFile(join(folder, 'manifests', 'face.yaml'), textOf('docs/manifests.md', 'yaml'))
  },
  'docs/serving-manifests.md': async (folder) => {
    await copyModel(folder, 'models/add_one')
    const to = ['--output-dir', join(folder, 'manifests'), '--storage-uri-prefix', 'pvc://models']
    await runTutti(['import', 'triton', join(folder, 'models'), ...to])
  },
  'docs/storage.md': (folder) => copyModel(folder, 'yolo'),
  'docs/rate-limiter.md': (folder) => copyConfigured(folder, 'docs/rate-limiter.md'),
  'docs/response-cache.md': (folder) => copyConfigured(folder, 'docs/response-cache.md'),
}

function textOf(page: string, language: string): string {
  const found = findSnippets(page).find((snippet) => snippet.language === language)
  if (found === undefined) throw new Error(`${page} has no block of ${language}`)
  return found.text
}

/** `models/` with a model that has the part of a configuration that the page shows. */
async function copyConfigured(folder: string, page: string): Promise<void> {
  await copyModel(folder, 'models/add_one_batch')
  await appendFile(join(folder, 'models/add_one_batch/config.pbtxt'), textOf(page, 'pbtxt'))
}

async function copyModel(folder: string, to: string): Promise<void> {
  await cp(join(BASIC, 'add_one_batch'), join(folder, to), { recursive: true })
}

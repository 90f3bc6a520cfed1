import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Ended, LOOPBACK, runProgram, runTutti, type Serving, startTutti } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { PYTHON } from '../triton-client.ts'
import { createPageFolder } from './page-folder.ts'
import type { Snippet } from './snippets.ts'
import { toManifests } from './wrap-yaml.ts'

/** A command that serves until it is ended. */
const SERVER = /^(?:npm run (?:--silent )?tutti --|tutti|npx \.\/tutti-[\d.]+\.tgz) serve (.+)$/

/** Texts of pages that name what is not of this machine, or whose port another test has, and what replaces them. */
const PLACES: readonly (readonly [string, string])[] = [
  ['host=redis.example', 'host=127.0.0.1'],
  ['--console-port 8003', '--console-port=0 --console-address=127.0.0.1'],
]

const FACE =
  '--model-repository=model_repository --model-control-mode=explicit --load-model=ens_face_restoration_v2.1'

const DONE: Ended = { code: 0, out: '', err: '' }

/** A page whose blocks are executed one after another, as its reader would: in one folder, with the server that was started last. */
export class PageRun {
  readonly #t: Test
  readonly #folder: string
  readonly #python: string
  #serving: Serving | undefined

  private constructor(t: Test, o: { readonly folder: string; readonly python: string }) {
    this.#t = t
    this.#folder = o.folder
    this.#python = o.python
  }

  /** @param python - what runs the page's Python and its models. */
  static async open(t: Test, page: string, python: string = PYTHON ?? ''): Promise<PageRun> {
    return new PageRun(t, { folder: await createPageFolder(t, page, python), python })
  }

  /** Ends the server that runs. */
  async close(): Promise<void> {
    await this.#serving?.process.stop('SIGKILL')
  }

  /** @returns what the first command that failed wrote, or all wrote together. */
  async execute({ language, text }: Snippet): Promise<Ended> {
    const execute = EXECUTORS[language]
    if (execute === undefined)
      throw new Error(`${language}: nothing executes it; e2e/src/docs/unexecuted.json lists such`)
    return await execute(this, text)
  }

  async shell(text: string): Promise<Ended> {
    let all = DONE
    for (const part of splitServers(text)) {
      const server = SERVER.exec(part)
      const ended = server === null ? await this.#run(part) : await this.#serve(server[1] ?? '')
      all = { code: ended.code, out: all.out + ended.out, err: all.err + ended.err }
      if (ended.code !== 0) break
    }
    return all
  }

  async python(program: string): Promise<Ended> {
    // A page that starts no server begins behind the demo, which has.
    if (this.#serving === undefined && program.includes('localhost:')) await this.#serve(FACE)
    const options = { cwd: this.#folder, env: this.#environment() }
    const ended = await runProgram(this.#python, ['-c', this.#place(program)], options)
    return ended.err === '' ? ended : { ...ended, code: 1 }
  }

  /** A part of a configuration, in that of a model. */
  async pbtxt(text: string): Promise<Ended> {
    if (text.startsWith('name:')) return await this.#printConfig(text)
    const repository = await copyModels(this.#t, ['sum_batch'], { append: { sum_batch: text } })
    return await runTutti(['config', 'sum_batch', `--model-repository=${repository}`])
  }

  async yaml(text: string): Promise<Ended> {
    const [, flag, name = ''] = /^# (--[\w-]+)=(\S+)\n/.exec(text) ?? []
    if (flag === undefined) return await runTutti(['validate', '-f', '-'], toManifests(text))
    await writeFile(join(this.#folder, name), text)
    const repository = await copyModels(this.#t, [])
    return await this.#serve(`${flag}=${name} --model-repository=${repository}`)
  }

  /** The configuration of a whole model, which the folder of the page has. */
  async #printConfig(text: string): Promise<Ended> {
    const [, name = ''] = /^name: "(.+)"/.exec(text) ?? []
    return await this.#run(`tutti config ${name} --model-repository=model_repository`)
  }

  async #serve(flags: string): Promise<Ended> {
    await this.close()
    const words = this.#place(flags).split(/ +/)
    const own = LOOPBACK.filter((flag) => !words.some((word) => word.startsWith(`${flag}=`)))
    const python = `--backend-config=python,interpreter=${this.#python}`
    const args = ['serve', ...words, ...own, python]
    const { serving } = await startTutti(args, { cwd: this.#folder })
    this.#t.teardown(() => serving.process.stop('SIGKILL'))
    this.#serving = serving
    return DONE
  }

  async #run(script: string): Promise<Ended> {
    // fpath is an array of zsh; the second item of one in bash.
    const text = `fpath=("$HOME" "$HOME")\n${this.#place(script)}`
    const options = { cwd: this.#folder, env: this.#environment() }
    return await runProgram('bash', ['-e', '-o', 'pipefail', '-c', text], options)
  }

  #environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      HOME: this.#folder,
      PATH: `${join(this.#folder, 'bin')}:${process.env['PATH']}`,
      TUTTI_GRPC_PORT: String(this.#serving?.grpcPort ?? 0),
    }
  }

  #place(text: string): string {
    const { grpcPort = 0, httpPort = 0 } = this.#serving ?? {}
    const ports = [
      ['localhost:8001', `127.0.0.1:${grpcPort}`],
      ['localhost:8000', `127.0.0.1:${httpPort}`],
    ] as const
    return [...PLACES, ...ports].reduce((placed, [from, to]) => placed.replaceAll(from, to), text)
  }
}

const EXECUTORS: Readonly<Record<string, (run: PageRun, text: string) => Promise<Ended>>> = {
  sh: (run, text) => run.shell(text),
  python: (run, text) => run.python(text),
  pbtxt: (run, text) => run.pbtxt(text),
  yaml: (run, text) => run.yaml(text),
}

/** The languages whose blocks are executed. */
export const LANGUAGES: ReadonlySet<string> = new Set(Object.keys(EXECUTORS))

/** A server is a part of its own, as it is in a terminal of its own; the lines between are one script. */
function splitServers(text: string): readonly string[] {
  const parts: string[] = []
  let lines: string[] = []
  const flush = (): void => {
    if (lines.length > 0) parts.push(lines.join('\n'))
    lines = []
  }
  for (const line of text.trim().split('\n')) {
    if (SERVER.test(line)) {
      flush()
      parts.push(line)
    } else lines.push(line)
  }
  flush()
  return parts
}

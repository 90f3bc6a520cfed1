// needs: python
import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT, runTutti, serve } from './serving.ts'
import { PYTHON, PYTHON_FLAGS } from './triton-client.ts'

t.setTimeout(600_000)

interface Snippet {
  readonly language: string
  readonly text: string
}

async function snippets(page: string): Promise<readonly Snippet[]> {
  const text = await readFile(`${ROOT}${page}`, 'utf8')
  return [...text.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language = '', body = '']) => ({
    language,
    text: body,
  }))
}

const DOCS = await readdir(`${ROOT}docs`, { recursive: true })
const PAGES = [
  ...(await readdir(ROOT)).filter((name) => name.endsWith('.md')),
  ...DOCS.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
]

await t.test('a page begins with what its reader can do, and is short', async (t) => {
  t.ok((await readFile(`${ROOT}README.md`, 'utf8')).split('\n').length <= 121, 'README.md')
  for (const page of PAGES.filter((name) => /^docs\/[\w-]+\.md$/.test(name))) {
    const text = await readFile(`${ROOT}${page}`, 'utf8')
    t.match(text, /^# .+\n\nAfter reading this page you (can|know) /, page)
    const isGenerated = text.includes('`npm run gen`')
    t.ok(isGenerated || text.split('\n').length <= 201, page)
  }
})

await t.test('the commands of the pages exist', async (t) => {
  const manifest = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as {
    scripts: Record<string, string>
  }
  for (const page of PAGES) {
    for (const { text } of (await snippets(page)).filter((one) => one.language === 'sh')) {
      for (const line of text.trim().split('\n')) {
        const script = /^npm (?:run )?(?:--silent )?(?<script>[\w:]+)/.exec(line)?.groups?.[
          'script'
        ]
        t.ok(script !== undefined && script in manifest.scripts, `${page}: ${line}`)
      }
    }
  }
})

await t.test('the manifests of the pages are valid', async (t) => {
  for (const page of PAGES) {
    for (const { text } of (await snippets(page)).filter((one) => one.language === 'yaml')) {
      // The others are parts of one.
      if (!/^(?:# yaml-language-server:.*\n)?apiVersion:/.test(text)) continue
      const { out } = await runTutti(['validate', '-f', '-'], text)
      t.match(out, / no errors/, page)
    }
  }
})

await t.test(
  'the manifest of docs/manifests.md fits the repository, and a misspelt tensor is told as there',
  async (t) => {
    const page = await readFile(`${ROOT}docs/manifests.md`, 'utf8')
    const [manifest] = await snippets('docs/manifests.md')
    const folder = t.testdir({ 'face.yaml': manifest?.text ?? '' })
    const file = `${folder}/face.yaml`
    const repository = `--model-repository=${ROOT}model_repository`
    const validate = () => runTutti(['validate', '-f', file, repository])
    t.match(await validate(), { code: 0, out: '2 Models and Ensembles, no errors\n' })
    await writeFile(file, (manifest?.text ?? '').replace('pre.output__0', 'pre.output_0'))
    const [line = ''] = (await validate()).out.split('\n')
    t.match(line, / \(UnknownTensor\)$/)
    t.ok(page.includes(`\n${line.replace(`${folder}/`, 'manifests/')}\n`), line)
  },
)

const needsPython = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : false

await t.test('the Python of the pages runs', { skip: needsPython }, async (t) => {
  const serving = await serve(t, { repositories: ['model_repository'], flags: PYTHON_FLAGS })
  for (const page of PAGES) {
    for (const { text } of (await snippets(page)).filter((one) => one.language === 'python')) {
      const program = text
        .replaceAll('localhost:8001', `127.0.0.1:${serving.grpcPort}`)
        .replaceAll('localhost:8000', `127.0.0.1:${serving.httpPort}`)
      const ran = await promisify(execFile)(PYTHON ?? '', ['-c', program]).catch((error: unknown) =>
        String(error),
      )
      t.match(ran, { stderr: '' }, `${page}: ${text.split('\n')[0]}`)
    }
  }
})

// needs: python
import { readFile, writeFile } from 'node:fs/promises'
import t from 'tap'
import { PageRun } from './docs/run-snippet.ts'
import { findSnippets, isListed, PAGES } from './docs/snippets.ts'
import { ROOT, runTutti } from './serving.ts'
import { PYTHON } from './triton-client.ts'

t.setTimeout(600_000)

await t.test('a page begins with what its reader can do, and is short', async (t) => {
  t.ok((await readFile(`${ROOT}README.md`, 'utf8')).split('\n').length <= 121, 'README.md')
  for (const page of PAGES.filter((name) => /^docs\/[\w-]+\.md$/.test(name))) {
    const text = await readFile(`${ROOT}${page}`, 'utf8')
    t.match(text, /^# .+\n\nAfter reading this page you (can|know) /, page)
    const isGenerated = text.includes('`npm run gen`')
    t.ok(isGenerated || text.split('\n').length <= 201, page)
  }
})

// Executes docs/manifests.md: manifests/face.yaml:20
await t.test(
  'the manifest of docs/manifests.md fits the repository, and a misspelt tensor is told as there',
  async (t) => {
    const page = await readFile(`${ROOT}docs/manifests.md`, 'utf8')
    const [manifest] = findSnippets('docs/manifests.md')
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

await t.test('the blocks of the pages are executed', { skip: needsPython }, async (t) => {
  const left = PAGES.map((page) => findSnippets(page).filter((one) => !isListed(one))).filter(
    (executed) => executed.length > 0,
  )
  t.ok(left.length > 10, `${left.length} pages`)
  // Two at a time: much of it waits for a server.
  const work = async (): Promise<void> => {
    for (let executed = left.shift(); executed !== undefined; executed = left.shift()) {
      const run = await PageRun.open(t, executed[0]?.page ?? '')
      for (const snippet of executed) {
        const { code, out, err } = await run.execute(snippet)
        t.equal(code, 0, `${snippet.page}:${snippet.line}${code === 0 ? '' : `: ${err}${out}`}`)
      }
      await run.close()
    }
  }
  await Promise.all([work(), work()])
})

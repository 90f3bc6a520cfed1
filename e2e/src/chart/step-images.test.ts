// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { operatorArgsOf, render } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

await t.test('the images of steps, by format and devices', WITH_HELM, async (t) => {
  const digest = `sha256:${'0'.repeat(64)}`
  const cases: readonly (readonly [Readonly<Record<string, string>>, readonly string[]])[] = [
    [
      {},
      [
        'step-cuda-image=tutti/step-cuda:0.1.0',
        'step-image=tutti/step:0.1.0',
        'step-python-cuda-image=tutti/step-python-cuda:0.1.0',
        'step-python-image=tutti/step-python:0.1.0',
      ],
    ],
    // A digest of one image says nothing of others.
    [
      {
        'step.image.digest': digest,
        'step.pythonImage.repository': 'tutti/step-python',
        'step.pythonImage.digest': digest,
        'step.cudaImage.repository': 'tutti/step-cuda',
        'step.cudaImage.digest': digest,
        'step.pythonCudaImage.repository': 'tutti/step-python',
        'step.pythonCudaImage.digest': digest,
      },
      [
        `step-cuda-image=tutti/step-cuda@${digest}`,
        `step-image=tutti/step@${digest}`,
        `step-python-cuda-image=tutti/step-python@${digest}`,
        `step-python-image=tutti/step-python@${digest}`,
      ],
    ],
    // A Python image of one's own may have packages that the models need.
    [
      { 'step.pythonImage.repository': 'own/python', 'step.pythonImage.tag': '3' },
      [
        'step-cuda-image=tutti/step-cuda:0.1.0',
        'step-image=tutti/step:0.1.0',
        'step-python-image=own/python:3',
      ],
    ],
    [
      { 'step.image.repository': 'registry.example/tutti/step', 'step.image.tag': '2' },
      [
        'step-cuda-image=registry.example/tutti/step-cuda:2',
        'step-image=registry.example/tutti/step:2',
        'step-python-cuda-image=registry.example/tutti/step-python-cuda:2',
        'step-python-image=registry.example/tutti/step-python:2',
      ],
    ],
    [
      { 'step.image.tag': '2', 'global.imageRegistry': 'r.example' },
      [
        'step-cuda-image=r.example/tutti/step-cuda:2',
        'step-image=r.example/tutti/step:2',
        'step-python-cuda-image=r.example/tutti/step-python-cuda:2',
        'step-python-image=r.example/tutti/step-python:2',
      ],
    ],
    // An installation that had one image for all keeps it.
    [
      { 'step.image.repository': 'tutti/step-python' },
      ['step-image=tutti/step-python:0.1.0', 'step-python-image=tutti/step-python:0.1.0'],
    ],
    [
      { 'step.image.repository': 'own/step', 'step.image.digest': digest },
      [`step-image=own/step@${digest}`, `step-python-image=own/step@${digest}`],
    ],
    [
      {
        'step.pythonImage.repository': 'own/python',
        'step.pythonImage.digest': digest,
        'step.cudaImage.repository': 'tutti/step-cuda',
        'step.pythonCudaImage.repository': 'own/cuda',
        'step.pythonCudaImage.tag': '3',
      },
      [
        'step-cuda-image=tutti/step-cuda:0.1.0',
        'step-image=tutti/step:0.1.0',
        'step-python-cuda-image=own/cuda:3',
        `step-python-image=own/python@${digest}`,
      ],
    ],
  ]
  for (const [values, wanted] of cases) {
    const images = operatorArgsOf(await render(values)).filter((arg) =>
      /^--step-.*image=/.test(arg),
    )
    t.same(
      images.toSorted(),
      wanted.map((flag) => `--${flag}`),
      JSON.stringify(values),
    )
  }
})

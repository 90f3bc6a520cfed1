import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { takePictures, withSides } from './image-dims.ts'
import {
  checkInterpolation,
  checkScaled,
  interpolate,
  interpolateOptions,
  SCALED_BOUND,
} from './interpolate.ts'
import { openPictures, outputPictures } from './pixels.ts'
import { checkSize, sizeOptions, targetSides, targetValue, toXY } from './target-size.ts'

/** Scales pictures. */
export const resize = onnxBuiltin({
  name: 'resize',
  summary: 'Scales pictures to a size, or by the length of one side.',
  options: z.strictObject({ ...sizeOptions, ...interpolateOptions }),
  inputs: { image: 'UINT8, UINT16, FP16 or FP32, [..., H, W, C]' },
  outputs: {
    image: `as \`image\`, with the new height and width: ${SCALED_BOUND}`,
    scale: 'FP32, [2]: new width by old width, new height by old height, for `scaleBoxes`',
    size: 'INT64, [2]: height and width of the input',
  },
  signature: (o, inputs) => {
    checkSize(o)
    checkInterpolation(o)
    const pictures = takePictures(inputs, 'image')
    const { datatype } = pictures
    const dims = withSides(pictures.dims, targetSides(o, pictures.dims))
    checkScaled(pictures, dims, o)
    return [
      { name: 'image', datatype, dims },
      { name: 'scale', datatype: 'FP32', dims: [2] },
      { name: 'size', datatype: 'INT64', dims: [2] },
    ]
  },
  build: (o, graph) => {
    const pictures = openPictures(graph, 'image')
    const to = targetValue(graph, o, pictures.sides)
    outputPictures(graph, 'image', 'image', interpolate(graph, pictures, to, o))
    const scale = graph.op('Div', [graph.cast(to, 'FP64'), pictures.sides])
    graph.output('scale', graph.cast(toXY(graph, scale), 'FP32'))
    graph.output('size', graph.cast(pictures.sides, 'INT64'))
  },
  arithmetic: [
    {
      case: '`nearest`',
      equals:
        '`cv2.resize(x, size, interpolation=cv2.INTER_NEAREST)`: pixel `floor(i * (1 / (new / old)))`; PIL takes another one',
      tolerance: 'none, but at a place between two pixels, where the last bit decides',
    },
    {
      case: '`bilinear`',
      equals:
        '`cv2.resize` with `INTER_LINEAR` of FP32, rounded with ties to even for UINT8 and UINT16',
      tolerance:
        '1e-5 of the greatest value before rounding. OpenCV itself computes UINT8 with 11 bits: they differ by 1 at most',
    },
    {
      case: '`bicubic`',
      equals: '`cv2.resize` with `INTER_CUBIC` of FP32, rounded in the same way',
      tolerance: '1e-5 of the greatest value before rounding, and 1 from UINT8 of OpenCV',
    },
    {
      case: '`area`',
      equals:
        '`cv2.resize` with `INTER_AREA` of FP32, where neither side grows, rounded in the same way',
      tolerance: '2e-3 of the greatest value before rounding, and 1 from UINT8 of OpenCV',
      except:
        'a side that grows: each pixel is the mean of the area that it covers, and OpenCV interpolates',
    },
    {
      case: '`bilinear`, `bicubic` with `antialias`',
      equals: '`PIL.Image.resize` with `BILINEAR`, `BICUBIC`, the width first',
      tolerance:
        '1 for UINT8; 1e-5 of the greatest value for FP32. Pillow 13 takes the height first where that is faster, and then UINT8 differs by up to 4, because it rounds between the two',
    },
  ],
})

declare module 'pngjs' {
  /** The part of pngjs that is used here. Pixels are RGBA, 8 bits each, row by row. */
  interface Picture {
    readonly width: number
    readonly height: number
    readonly data: Buffer
    readonly depth: number
  }
  export const PNG: {
    readonly sync: {
      read(bytes: Buffer): Picture
      write(picture: Pick<Picture, 'width' | 'height' | 'data'>): Buffer
    }
  }
}

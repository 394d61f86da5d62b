/** Pixels of a screen, row by row: red, green, blue and an alpha of 255. */
export interface Picture {
  width: number;
  height: number;
  data: Uint8Array;
}

/** The picture as another camera would see it; what lies outside is grey. */
export function turned(picture: Picture, { turnedDeg, keystone }: { turnedDeg: number; keystone: number }): Picture {
  const { width, height } = picture;
  const data = new Uint8Array(width * height * 4).fill(128);
  const angle = (turnedDeg * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const across = x - width / 2;
      const down = y - height / 2;
      const depth = 1 + (keystone * down) / (height / 2);
      const u = Math.round((across * cos + down * sin) * depth + width / 2);
      const v = Math.round((down * cos - across * sin) * depth + height / 2);
      const to = (y * width + x) * 4;
      if (u >= 0 && v >= 0 && u < width && v < height) {
        const from = (v * width + u) * 4;
        for (let channel = 0; channel < 3; channel += 1) data[to + channel] = picture.data[from + channel] ?? 0;
      }
      data[to + 3] = 255;
    }
  }
  return { width, height, data };
}

/** How two pictures differ. */
export interface PictureDifference {
  /** Of all pixels, 0 to 1; 1 when they are not of one size. */
  share: number;
  /** The expected picture, faint, with each pixel that differs in red. */
  picture: Picture;
}

/** Of 255, on any channel: what scaling and colour profiles do to a picture. */
const CHANNEL_TOLERANCE = 24;
const FAINT = 4;

/** Compares what a screen shows with what it should. */
export function comparePictures(actual: Picture, expected: Picture): PictureDifference {
  const { width, height } = expected;
  const isOneSize = actual.width === width && actual.height === height;
  const data = new Uint8Array(width * height * 4).fill(255);
  let different = 0;
  for (let at = 0; at < data.length; at += 4) {
    let differs = !isOneSize;
    for (let channel = 0; channel < 3; channel += 1) {
      const here = expected.data[at + channel] ?? 0;
      if (Math.abs((actual.data[at + channel] ?? 0) - here) > CHANNEL_TOLERANCE) differs = true;
      data[at + channel] = 255 - Math.floor((255 - here) / FAINT);
    }
    if (differs) {
      different += 1;
      data.set([255, 0, 0], at);
    }
  }
  return { share: different / (width * height), picture: { width, height, data } };
}
